/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome's trace event JSON, for Perfetto's page and chrome://tracing: each thread's consecutive
 * samples merged into slices. A sample stands for one period from its time on; where the next
 * sample of its thread comes later than half a period after that, the thread was off the CPU and
 * its slices end.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "exporters/chrome/device.h"
#include "exporters/chrome/kineto_json.h"
#include "exporters/chrome/program.h"
#include "exporters/exporters.h"
#include "model/kinds.h"
#include "model/trace_capture.h"
#include "model/windows.h"

struct slice {
	uint64_t start_ns, end_ns;
	uint32_t thread, function; /* function MODEL_NONE: no stack */
	uint64_t self_samples;
};

/* A thread's open slices, outermost first. */
struct open_thread {
	ARRAY_OF(uint32_t) slices; /* indices */
	uint64_t end_ns;           /* of its last sample */
};

/* Slices lie in the order in which they begin, outer ones first. */
struct slices {
	ARRAY_OF(struct slice) slices;
	struct open_thread *threads;
	size_t thread_count;
	uint64_t period_ns;
};

static void slices_done(struct slices *slices)
{
	for (size_t i = 0; slices->threads && i < slices->thread_count; i++)
		array_done(&slices->threads[i].slices);
	free(slices->threads);
	array_done(&slices->slices);
}

static void close_slices(struct slices *slices, struct open_thread *open, size_t keep)
{
	while (open->slices.count > keep)
		slices->slices.items[open->slices.items[--open->slices.count]].end_ns =
			open->end_ns;
}

static uint32_t function_at(
	const struct model *model, const struct model_stack *stack, uint32_t depth)
{
	if (!stack || !stack->count)
		return MODEL_NONE;
	return model->frames.items[model->stack_frames.items[stack->first + depth]].function;
}

static int open_slice(struct slices *slices, struct open_thread *open, uint32_t thread,
	uint32_t function, uint64_t start_ns)
{
	struct slice slice = {.start_ns = start_ns, .thread = thread, .function = function};
	uint32_t index = (uint32_t)slices->slices.count;
	int r = array_append(&slices->slices, slice);

	return r < 0 ? r : array_append(&open->slices, index);
}

/* A period later, or with the window. */
static uint64_t end_of_sample(
	const struct slices *slices, const struct model *model, const struct model_sample *sample)
{
	uint64_t end_ns = sample->time_ns + slices->period_ns;
	uint32_t window = model_window_at(model, sample->time_ns);

	return window == MODEL_NONE ? end_ns : MIN(end_ns, model->windows.items[window].end_ns);
}

static int add_sample(
	struct slices *slices, const struct model *model, const struct model_sample *sample)
{
	struct open_thread *open = &slices->threads[sample->thread];
	const struct model_stack *stack =
		sample->stack == MODEL_NONE ? NULL : &model->stacks.items[sample->stack];
	uint32_t depth = stack && stack->count ? stack->count : 1, common = 0;
	int r = 0;

	if (sample->time_ns > open->end_ns + slices->period_ns / 2 ||
		(sample->time_ns > open->end_ns &&
			!model_is_continuous(model, open->end_ns, sample->time_ns)))
		close_slices(slices, open, 0);
	else
		open->end_ns = sample->time_ns;
	while (common < depth && common < open->slices.count &&
		slices->slices.items[open->slices.items[common]].function ==
			function_at(model, stack, common))
		common++;
	close_slices(slices, open, common);
	for (uint32_t i = common; r == 0 && i < depth; i++)
		r = open_slice(slices, open, sample->thread, function_at(model, stack, i),
			sample->time_ns);
	if (r < 0)
		return r;
	slices->slices.items[open->slices.items[depth - 1]].self_samples++;
	open->end_ns = end_of_sample(slices, model, sample);
	return 0;
}

static int slices_init(
	struct slices *slices, const struct model *model, const struct selected *selected)
{
	int r;

	slices->thread_count = model->threads.count;
	slices->threads = calloc(slices->thread_count + 1, sizeof(*slices->threads));
	slices->period_ns = model_has_time(model) ? model_sample_weight_ns(model) : NS_PER_MS;
	r = slices->threads ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		if (selected->samples[i])
			r = add_sample(slices, model, &model->samples.items[i]);
	}
	for (size_t i = 0; r == 0 && i < slices->thread_count; i++)
		close_slices(slices, &slices->threads[i], 0);
	return r;
}

/*
 * The number that stands for a process: its pid, or one above every pid (2^22) where an earlier
 * process had it.
 */
static int process_numbers(const struct model *model, uint64_t **ret_numbers)
{
	_cleanup_free_ uint64_t *numbers = calloc(model->processes.count + 1, sizeof(*numbers));
	struct map_u64 taken = {0};
	int r = numbers ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < model->processes.count; i++) {
		uint32_t pid = model->processes.items[i].pid;

		numbers[i] = map_u64_get(&taken, pid, NULL) ? (1u << 30) + i : pid;
		r = map_u64_set(&taken, pid, i);
	}
	map_u64_done(&taken);
	if (r == 0)
		*ret_numbers = TAKE_PTR(numbers);
	return r;
}

/*
 * What every slice of a function begins with, made once each: a trace has many slices. Ends before
 * the count of self samples. After the last function comes "[no stack]".
 */
struct slice_texts {
	struct strbuf text;
	ARRAY_OF(size_t) starts; /* one more than texts */
};

static void slice_texts_done(struct slice_texts *texts)
{
	strbuf_done(&texts->text);
	array_done(&texts->starts);
}

/* In such traces "kernel" is the category of kernels of devices. */
static const char *category(const struct model *model, uint32_t function)
{
	if (function == MODEL_NONE)
		return "native";
	if (model->functions.items[function].kind == CAPTURE_FRAME_KERNEL)
		return "os_kernel";
	return kind_name(model->functions.items[function].kind);
}

static void add_slice_text(struct strbuf *out, const struct model *model, uint32_t function)
{
	struct json_writer json = {.out = out};

	json_begin_object(&json);
	json_member_text(&json, "ph", "X");
	json_key(&json, "name");
	json_string(&json, model_function_name(model, function));
	json_member_text(&json, "cat", category(model, function));
	json_key(&json, "args");
	json_begin_object(&json);
	json_member_text(&json, "module", model_function_module(model, function));
	json_key(&json, "self_samples");
}

static int slice_texts_init(struct slice_texts *texts, const struct model *model)
{
	int r = array_append(&texts->starts, 0);

	for (uint32_t i = 0; r == 0 && i <= model->functions.count; i++) {
		add_slice_text(&texts->text, model, i < model->functions.count ? i : MODEL_NONE);
		r = array_append(&texts->starts, texts->text.length);
	}
	return r ?: strbuf_status(&texts->text);
}

static void write_slice(struct strbuf *out, const struct slice_texts *texts,
	const struct slice *slice, uint32_t tid, const struct chrome_clock *clock,
	uint64_t process_number)
{
	size_t text = MIN(slice->function, texts->starts.count - 2);
	size_t start = texts->starts.items[text], end = texts->starts.items[text + 1];

	strbuf_add_bytes(out, ",\n", 2);
	strbuf_add_bytes(out, texts->text.data + start, end - start);
	strbuf_addf(out, "%llu}", (unsigned long long)slice->self_samples);
	chrome_add_span(out, clock, slice->start_ns, slice->end_ns);
	strbuf_addf(out, ",\"pid\":%llu,\"tid\":%u}", (unsigned long long)process_number, tid);
}

static void write_name(struct json_writer *json, const char *event, const char *name,
	uint64_t process_number, const uint32_t *tid)
{
	json_begin_object(json);
	json_member_text(json, "ph", "M");
	json_key(json, "name");
	json_string(json, event);
	json_member_u64(json, "pid", process_number);
	if (tid) {
		json_member_u64(json, "tid", *tid);
	}
	json_key(json, "args");
	json_begin_object(json);
	json_key(json, "name");
	json_string(json, name);
	json_end_object(json);
	json_end_object(json);
}

/* Names come first, so that every slice follows another event. */
static void write_names(struct strbuf *out, const struct model *model, const uint64_t *numbers)
{
	struct json_writer json = {.out = out, .depth = 1};

	for (size_t i = 0; i < model->processes.count; i++)
		write_name(&json, "process_name", model->processes.items[i].name, numbers[i], NULL);
	array_foreach (&model->threads, thread)
		write_name(
			&json, "thread_name", thread->name, numbers[thread->process], &thread->tid);
}

/* A file is of one rank. */
static void write_rank(struct json_writer *json, const struct model *model)
{
	uint32_t world_size = 0, rank = model_only_rank(model, &world_size);

	if (rank == MODEL_NONE)
		return;
	json_key(json, "distributedInfo");
	json_begin_object(json);
	json_member_u64(json, "rank", rank);
	json_member_u64(json, "world_size", world_size);
	json_end_object(json);
}

static void write_device_names(struct json_writer *json, const struct trace *rows)
{
	json_key(json, "deviceProperties");
	json_begin_array(json);
	array_foreach (&rows->devices, device) {
		json_begin_object(json);
		json_member_u64(json, "id", (uint64_t)device->number);
		json_key(json, "name");
		json_string(json, trace_text(rows, device->name));
		json_end_object(json);
	}
	json_end_array(json);
}

static int write_document(struct strbuf *out, const struct model *model,
	const struct export_options *options, const struct slices *slices,
	const struct slice_texts *texts, const uint64_t *numbers)
{
	_cleanup_trace_ struct trace *rows = NULL;
	const struct chrome_clock clock = chrome_clock_of(model);
	struct json_writer json = {.out = out};
	int r = chrome_device_rows(&rows, model, numbers);

	r = r ?: chrome_add_program(rows, model, numbers);
	if (r < 0)
		return r;
	json_begin_object(&json);
	json_member_u64(&json, "schemaVersion", 1);
	if (model->session.start_realtime_ns) {
		json_member_u64(&json, "baseTimeNanoseconds",
			model->session.start_realtime_ns + clock.origin_ns -
				model->session.start_time_ns - clock.first_ns);
	}
	write_rank(&json, model);
	json_member_text(&json, "displayTimeUnit", "ms");
	json_key(&json, "otherData");
	json_begin_object(&json);
	json_member_text(&json, "title", export_title(model, options));
	json_member_text(&json, "exporter", "sonde " SONDE_VERSION);
	json_member_u64(&json, "period_ns", slices->period_ns);
	json_end_object(&json);
	write_device_names(&json, rows);
	json_key(&json, "traceEvents");
	json_begin_array(&json);
	write_names(out, model, numbers);
	array_foreach (&slices->slices, slice) {
		const struct model_thread *thread = &model->threads.items[slice->thread];

		write_slice(out, texts, slice, thread->tid, &clock, numbers[thread->process]);
	}
	r = kineto_write_events(out, rows, &clock);
	json_end_array(&json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return r;
}

/* What was imported, as it was. */
static int export_trace(const struct model *model, struct strbuf *out, struct errmsg *err)
{
	if (model->traces.count > 1)
		return errmsg_set(err, -EINVAL,
			"the capture holds the traces of %zu ranks, and a file of this format one: "
			"import each into a capture of its own, or write -f pftrace, which has "
			"all of them",
			model->traces.count);
	return export_result(
		kineto_write_document(out, model->traces.items[0]), out, "chrome", err);
}

static int chrome_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_(slices_done) struct slices slices = {0};
	_cleanup_(slice_texts_done) struct slice_texts texts = {0};
	_cleanup_free_ uint64_t *numbers = NULL;
	int r;

	if (model_is_foreign(model))
		return export_trace(model, out, err);
	r = selection_apply(selection, model, &selected, err);
	r = r ?: slices_init(&slices, model, &selected);
	r = r ?: slice_texts_init(&texts, model);
	r = r ?: process_numbers(model, &numbers);
	if (r == 0)
		r = write_document(
			out, model, export_options_or_default(options), &slices, &texts, numbers);
	return export_result(r, out, "chrome", err);
}

const struct exporter chrome_exporter = {
	.name = "chrome",
	.has_events = true,
	.description = "trace events for ui.perfetto.dev and chrome://tracing: slices per thread, "
		       "device work, ranges, windows and steps",
	.extension = ".trace.json",
	.takes_traces = true,
	.export = chrome_export,
};
