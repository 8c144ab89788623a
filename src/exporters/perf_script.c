/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples as `perf script` prints them, for the many tools that read that text: a line of who,
 * where and when, then a line for each frame from the innermost, then an empty one. Addresses are
 * those in the file, not those in memory.
 */
#include <errno.h>

#include "base/escape.h"
#include "base/file.h"
#include "exporters/exporters.h"

static void add_head(
	struct strbuf *out, const struct model *model, const struct model_sample *sample)
{
	const struct model_thread *thread = &model->threads.items[sample->thread];
	uint64_t time_ns = sample->time_ns;
	uint64_t weight_ns = sample->count * model_sample_weight_ns(model);

	escape_plain(out, *thread->name ? thread->name : "[unknown]");
	strbuf_addf(out, " %u/%u [%03u] %llu.%09llu: %10llu %s: \n",
		model->processes.items[thread->process].pid, thread->tid, sample->cpu,
		(unsigned long long)(time_ns / NS_PER_S), (unsigned long long)(time_ns % NS_PER_S),
		(unsigned long long)weight_ns,
		model->counts_energy  ? "energy-uj"
		: model->counts_bytes ? "gpu-bytes"
				      : "cpu-clock");
}

static void add_frame(struct strbuf *out, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = &model->frames.items[index];
	const struct model_function *function = &model->functions.items[frame->function];

	strbuf_addf(out, "\t%16llx ", (unsigned long long)frame->rel_pc);
	escape_plain(out, function->name);
	strbuf_add(out, " (");
	escape_plain(out, frame->inlined ? "inlined" : model_module_name(model, function->module));
	strbuf_add(out, ")\n");
}

static void add_sample(
	struct strbuf *out, const struct model *model, const struct model_sample *sample)
{
	const struct model_stack *stack =
		sample->stack == MODEL_NONE ? NULL : &model->stacks.items[sample->stack];

	add_head(out, model, sample);
	for (uint32_t i = stack ? stack->count : 0; i-- > 0;)
		add_frame(out, model, model->stack_frames.items[stack->first + i]);
	if (!stack || !stack->count)
		strbuf_addf(out, "\t%16x [no stack] ([unknown])\n", 0);
	strbuf_add_char(out, '\n');
}

static int perf_script_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	int r = selection_apply(selection, model, &selected, err);

	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		if (selected.samples[i])
			add_sample(out, model, &model->samples.items[i]);
	}
	return export_result(r, out, "perf-script", err);
}

const struct exporter perf_script_exporter = {
	.name = "perf-script",
	.description = "samples as perf script prints them, for tools that read that",
	.extension = ".perf.txt",
	.is_weighed = true,
	.export = perf_script_export,
};
