/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's file format: one sampled profile per thread, samples in order of time, equal
 * neighbours joined. A frame is a function, so that recursion and lines fold as in the report.
 * Schema: www.speedscope.app/file-format-schema.json.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/escape.h"
#include "base/json.h"
#include "exporters/exporters.h"

/* A run of a thread's samples with one stack. */
struct run {
	uint32_t stack; /* MODEL_NONE: no stack */
	uint64_t samples;
};

struct thread_runs {
	ARRAY_OF(struct run) runs;
	uint64_t samples;
};

struct runs {
	struct thread_runs *threads; /* by thread */
	size_t count;
};

static void runs_done(struct runs *runs)
{
	for (size_t i = 0; runs->threads && i < runs->count; i++)
		array_done(&runs->threads[i].runs);
	free(runs->threads);
}

static int add_sample(struct thread_runs *thread, const struct model_sample *sample)
{
	uint32_t stack = sample->stack;
	struct run *last = thread->runs.count ? &thread->runs.items[thread->runs.count - 1] : NULL;

	thread->samples += sample->count;
	if (last && last->stack == stack) {
		last->samples += sample->count;
		return 0;
	}
	return array_append(&thread->runs, (struct run){.stack = stack, .samples = sample->count});
}

static int runs_init(struct runs *runs, const struct model *model, const struct selected *selected)
{
	int r;

	runs->count = model->threads.count;
	runs->threads = calloc(runs->count + 1, sizeof(*runs->threads));
	r = runs->threads ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		if (selected->samples[i])
			r = add_sample(&runs->threads[model->samples.items[i].thread],
				&model->samples.items[i]);
	}
	return r;
}

/* Frames are the model's functions; after the last comes "[no stack]". */
static void write_frames(struct json_writer *json, const struct model *model)
{
	json_key(json, "frames");
	json_begin_array(json);
	for (size_t i = 0; i <= model->functions.count; i++) {
		uint32_t function = i < model->functions.count ? (uint32_t)i : MODEL_NONE;
		const char *file = model_function_module(model, function);

		if (function != MODEL_NONE && *model->functions.items[i].source_file)
			file = model->functions.items[i].source_file;
		json_begin_object(json);
		json_key(json, "name");
		json_string(json, model_function_name(model, function));
		json_key(json, "file");
		json_string(json, file);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_stack(struct json_writer *json, const struct model *model, uint32_t stack)
{
	const struct model_stack *found = stack == MODEL_NONE ? NULL : &model->stacks.items[stack];

	json_begin_array(json);
	if (!found || !found->count)
		json_u64(json, model->functions.count);
	for (uint32_t i = 0; found && i < found->count; i++) {
		uint32_t frame = model->stack_frames.items[found->first + i];

		json_u64(json, model->frames.items[frame].function);
	}
	json_end_array(json);
}

static void write_thread_name(
	struct json_writer *json, const struct model *model, const struct model_thread *thread)
{
	const struct model_process *process = &model->processes.items[thread->process];
	_cleanup_strbuf_ struct strbuf name = {0};

	escape_plain(&name, process->name);
	strbuf_addf(&name, " (%u) \xe2\x80\xba ", process->pid);
	escape_plain(&name, thread->name);
	strbuf_addf(&name, " (%u)", thread->tid);
	if (model->counts_energy) /* the format knows no unit of energy */
		strbuf_add(&name, ", microjoules");
	json_string(json, strbuf_cstr(&name));
	strbuf_inherit_status(json->out, &name);
}

static void write_profile(struct json_writer *json, const struct model *model,
	const struct model_thread *thread, const struct thread_runs *runs)
{
	uint64_t weight = model_sample_weight_ns(model);

	json_begin_object(json);
	json_key(json, "type");
	json_string(json, "sampled");
	json_key(json, "name");
	write_thread_name(json, model, thread);
	json_key(json, "unit");
	json_string(json, model->counts_bytes     ? "bytes"
			  : model_has_time(model) ? "nanoseconds"
						  : "none");
	json_key(json, "startValue");
	json_u64(json, 0);
	json_key(json, "endValue");
	json_u64(json, runs->samples * weight);
	json_key(json, "samples");
	json_begin_array(json);
	array_foreach (&runs->runs, run)
		write_stack(json, model, run->stack);
	json_end_array(json);
	json_key(json, "weights");
	json_begin_array(json);
	array_foreach (&runs->runs, run)
		json_u64(json, run->samples * weight);
	json_end_array(json);
	json_end_object(json);
}

/* Which profile opens first: the busiest thread's. Profiles without samples are left out. */
static uint64_t busiest_profile(const struct runs *runs)
{
	uint64_t index = 0, best = 0, most = 0;

	for (size_t i = 0; i < runs->count; i++) {
		if (!runs->threads[i].samples)
			continue;
		if (runs->threads[i].samples > most) {
			most = runs->threads[i].samples;
			best = index;
		}
		index++;
	}
	return best;
}

static void write_document(struct strbuf *out, const struct model *model,
	const struct export_options *options, const struct runs *runs)
{
	struct json_writer json = {.out = out};

	json_begin_object(&json);
	json_key(&json, "$schema");
	json_string(&json, "https://www.speedscope.app/file-format-schema.json");
	json_key(&json, "exporter");
	json_string(&json, "sonde@" SONDE_VERSION);
	json_key(&json, "name");
	json_string(&json, export_title(model, options));
	json_key(&json, "activeProfileIndex");
	json_u64(&json, busiest_profile(runs));
	json_key(&json, "shared");
	json_begin_object(&json);
	write_frames(&json, model);
	json_end_object(&json);
	json_key(&json, "profiles");
	json_begin_array(&json);
	for (size_t i = 0; i < runs->count; i++) {
		if (runs->threads[i].samples)
			write_profile(&json, model, &model->threads.items[i], &runs->threads[i]);
	}
	json_end_array(&json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
}

static int speedscope_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_(runs_done) struct runs runs = {0};
	int r = selection_apply(selection, model, &selected, err);

	r = r ?: runs_init(&runs, model, &selected);
	if (r == 0)
		write_document(out, model, export_options_or_default(options), &runs);
	return export_result(r, out, "speedscope", err);
}

const struct exporter speedscope_exporter = {
	.name = "speedscope",
	.description = "for www.speedscope.app: one profile per thread, in time order",
	.extension = ".speedscope.json",
	.is_weighed = true,
	.export = speedscope_export,
};
