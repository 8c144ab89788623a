/* SPDX-License-Identifier: Apache-2.0 */
/* Section: what warps of kernels stood at, and why, by PC sampling. */
#include "analyses/device/stalls.h"

#include "analyses/selection.h"
#include "report/sections.h"
#include "report/view.h"

#define SAMPLES_COLUMN                                                                             \
	{                                                                                          \
		.key = "samples", .title = "Samples", .kind = REPORT_COUNT                         \
	}
#define SHARE_COLUMN                                                                               \
	{                                                                                          \
		.key = "share", .title = "Share", .kind = REPORT_SHARE,                            \
		.help = "of all samples that have an instruction"                                  \
	}
#define NOT_ISSUED_COLUMN                                                                          \
	{                                                                                          \
		.key = "not_issued", .title = "Not issued", .kind = REPORT_COUNT,                  \
		.help = "of samples: in a cycle in which the warp's scheduler issued no "          \
			"instruction"                                                              \
	}
#define KERNEL_COLUMN                                                                              \
	{                                                                                          \
		.key = "kernel", .title = "Kernel", .kind = REPORT_TEXT, .is_name = true,          \
		.shrinks_to = 14                                                                   \
	}

static const struct report_column reason_columns[] = {
	SAMPLES_COLUMN,
	SHARE_COLUMN,
	{.key = "kernel_share",
		.title = "Of kernel",
		.kind = REPORT_SHARE,
		.help = "of the samples of its kernel"},
	NOT_ISSUED_COLUMN,
	{.key = "reason", .title = "Reason", .kind = REPORT_TEXT, .help = "as CUPTI names it"},
	KERNEL_COLUMN,
};
static const struct report_shape reason_shape = REPORT_SHAPE(reason_columns);

static const struct report_column line_columns[] = {
	SAMPLES_COLUMN,
	SHARE_COLUMN,
	NOT_ISSUED_COLUMN,
	{.key = "reason", .title = "Reason", .kind = REPORT_TEXT, .help = "of most samples"},
	{.key = "reason_share", .title = "Of line", .kind = REPORT_SHARE},
	{.title = "Line", .kind = REPORT_TEXT, .is_path = true, .shrinks_to = 14},
	{.key = "source_file", .kind = REPORT_TEXT},
	{.key = "line", .kind = REPORT_INTEGER},
	KERNEL_COLUMN,
};
static const struct report_shape line_shape = REPORT_SHAPE(line_columns);

static const struct report_column pc_columns[] = {
	SAMPLES_COLUMN,
	SHARE_COLUMN,
	NOT_ISSUED_COLUMN,
	{.key = "reason", .title = "Reason", .kind = REPORT_TEXT, .help = "of most samples"},
	{.key = "reason_share", .title = "Of PC", .kind = REPORT_SHARE},
	{.title = "PC", .kind = REPORT_TEXT, .is_right = true},
	{.key = "pc_offset", .kind = REPORT_INTEGER, .help = "in the kernel's code"},
	{.key = "cubin", .kind = REPORT_TEXT, .help = "CUPTI's checksum of the code"},
	{.title = "Line",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_UNKNOWN,
		.is_path = true,
		.shrinks_to = 14},
	{.key = "source_file", .kind = REPORT_TEXT},
	{.key = "line", .kind = REPORT_INTEGER},
	KERNEL_COLUMN,
};
static const struct report_shape pc_shape = REPORT_SHAPE(pc_columns);

static const struct report_column columns[] = {
	{.key = "samples", .kind = REPORT_COUNT, .help = "that have an instruction"},
	{.key = "not_issued", .kind = REPORT_COUNT},
	{.key = "without_line", .kind = REPORT_COUNT, .help = "of samples"},
	{.key = "device_samples",
		.kind = REPORT_COUNT,
		.help = "as CUPTI counts them, those dropped and foreign included; like the next "
			"ones of all processes"},
	{.key = "dropped", .kind = REPORT_COUNT, .help = "by the device"},
	{.key = "foreign",
		.kind = REPORT_COUNT,
		.help = "in code of which CUPTI gives no instructions"},
	{.key = "lost", .kind = REPORT_COUNT, .help = "found no room in the process's table"},
	{.key = "reads", .kind = REPORT_COUNT, .help = "of CUPTI's data"},
	{.key = "full_reads",
		.kind = REPORT_COUNT,
		.help = "found the device's buffer full: samples are missing"},
	{.key = "failed_reads", .kind = REPORT_COUNT},
	{.key = "period_cycles",
		.kind = REPORT_COUNT,
		.help = "between two samples; null: not known"},
	{.key = "reasons",
		.total = "reasons_total",
		.kind = REPORT_ROWS,
		.shape = &reason_shape,
		.help = "by kernel, that with most samples first"},
	{.key = "lines",
		.total = "lines_total",
		.kind = REPORT_ROWS,
		.shape = &line_shape,
		.help = "source lines of kernels, most samples first"},
	{.key = "instructions",
		.total = "instructions_total",
		.kind = REPORT_ROWS,
		.shape = &pc_shape,
		.help = "most samples first"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

struct found {
	struct stall_groups reasons, lines, pcs;
};

static void found_done(struct found *found)
{
	stall_groups_done(&found->reasons);
	stall_groups_done(&found->lines);
	stall_groups_done(&found->pcs);
}
#define _cleanup_found_ _cleanup_(found_done)

static int find(struct found *found, const struct model *model)
{
	int r = stall_groups_init(&found->reasons, model, STALL_BY_REASON);

	if (r < 0)
		return r;
	r = stall_groups_init(&found->lines, model, STALL_BY_LINE);
	return r < 0 ? r : stall_groups_init(&found->pcs, model, STALL_BY_PC);
}

/* ---- tables ---- */

static void add_start(
	struct result *result, const struct found *found, const struct stall_group *group)
{
	result_u64(result, group->samples);
	result_share(result, (double)group->samples, (double)found->reasons.samples);
}

static void add_line(struct result *result, const struct model_pc *pc)
{
	if (pc->file)
		result_textf(result, "%s:%u", pc->file, pc->line);
	else
		result_null(result);
	result_text(result, pc->file);
	result_known(result, pc->file, pc->line);
}

static void add_top_reason(struct result *result, const struct stall_group *group)
{
	result_u64(result, group->not_issued);
	result_text(result, stall_reason_name(group->reason));
	result_share(result, (double)group->reason_samples, (double)group->samples);
}

static uint32_t add_reasons(
	struct result *result, const struct report_input *input, const struct found *found)
{
	uint32_t table = result_open(result);
	size_t wanted = report_rows_wanted(result, input, found->reasons.items.count);

	for (size_t i = 0; i < wanted; i++) {
		const struct stall_group *group = &found->reasons.items.items[i];

		add_start(result, found, group);
		result_share(result, (double)group->samples, (double)group->kernel_samples);
		result_u64(result, group->not_issued);
		result_text(result, stall_reason_name(group->first->reason));
		result_text(result, group->first->function);
	}
	result_close(result);
	return table;
}

static uint32_t add_lines(
	struct result *result, const struct report_input *input, const struct found *found)
{
	uint32_t table = result_open(result);
	size_t wanted = report_rows_wanted(result, input, found->lines.items.count);

	for (size_t i = 0; i < wanted; i++) {
		const struct stall_group *group = &found->lines.items.items[i];

		add_start(result, found, group);
		add_top_reason(result, group);
		add_line(result, group->first);
		result_text(result, group->first->function);
	}
	result_close(result);
	return table;
}

static uint32_t add_pcs(
	struct result *result, const struct report_input *input, const struct found *found)
{
	uint32_t table = result_open(result);
	size_t wanted = report_rows_wanted(result, input, found->pcs.items.count);

	for (size_t i = 0; i < wanted; i++) {
		const struct stall_group *group = &found->pcs.items.items[i];
		const struct model_pc *pc = group->first;

		add_start(result, found, group);
		add_top_reason(result, group);
		result_textf(result, "0x%llx", (unsigned long long)pc->pc_offset);
		result_u64(result, pc->pc_offset);
		result_textf(result, "%016llx", (unsigned long long)pc->cubin);
		add_line(result, pc);
		result_text(result, pc->function);
	}
	result_close(result);
	return table;
}

/* ---- sentences ---- */

/* Of all processes, whatever was chosen of them. */
static void say_lost(struct result *result, const struct capture_pc_counts *counts)
{
	if (counts->dropped || counts->foreign)
		result_sentencef(result, 2,
			"Of %llu samples that the device took it dropped %llu, and %llu were in "
			"code of which CUPTI gives no instructions: they are in no row.",
			(unsigned long long)counts->samples, (unsigned long long)counts->dropped,
			(unsigned long long)counts->foreign);
	if (counts->full_reads)
		result_sentencef(result, 2,
			"%llu of %llu reads found the device's buffer for samples full: what it "
			"took then is missing.",
			(unsigned long long)counts->full_reads, (unsigned long long)counts->reads);
	if (counts->failed_reads)
		result_sentencef(result, 2,
			"CUPTI refused %llu of %llu reads: the samples of those times are missing.",
			(unsigned long long)counts->failed_reads,
			(unsigned long long)counts->reads);
	if (counts->lost)
		result_sentencef(result, 2,
			"%llu samples found no room in their process: more instructions were "
			"sampled at once than it counts.",
			(unsigned long long)counts->lost);
}

static void say_what(struct result *result, const struct found *found, const struct model *model)
{
	uint64_t all = found->reasons.samples, with_line = found->lines.samples;

	result_sentencef(result, 2, "%llu samples have an instruction%s.", (unsigned long long)all,
		model->pc_counts.period_cycles ? ""
					       : "; how often the device takes one is not known");
	if (all > with_line)
		result_sentencef(result, 2,
			"%.0f %% of them have no source line: compile kernels with nvcc -lineinfo; "
			"libraries have none.",
			100.0 * (double)(all - with_line) / (double)all);
	say_lost(result, &model->pc_counts);
}

static void show(struct result *result, const struct report_input *input, const char *heading,
	uint32_t table, const char *noun)
{
	if (!result_count(result, table))
		return;
	result_heading(result, heading);
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 8), .noun = noun});
}

static int say_nothing(struct result *result, const struct report_input *input)
{
	array_foreach (&input->view->model->device_notes, note) {
		if (note->note == WIRE_NOTE_PC_SAMPLING)
			return report_nothing(result, input, note->text);
	}
	return report_nothing(result, input,
		"No instructions were sampled: sonde record --pc-sampling does that in programs "
		"that use CUDA.");
}

static int make(struct result *result, const struct report_input *input)
{
	const struct model *model = input->view->model;
	const struct capture_pc_counts *counts = &model->pc_counts;
	_cleanup_found_ struct found found = {0};
	uint32_t reasons, lines, pcs;
	int r;

	if (selection_left_out(model, SELECTION_PCS))
		return 0;
	if (!model->pcs.count && model->is_narrowed)
		return report_nothing(result, input, "No samples of instructions fit the filters.");
	if (!model->pcs.count && !counts->reads)
		return say_nothing(result, input);
	r = find(&found, model);
	if (r < 0)
		return r;
	result_open(result);
	result_u64(result, found.reasons.samples);
	result_u64(result, found.reasons.not_issued);
	result_u64(result, found.reasons.samples - found.lines.samples);
	result_u64(result, counts->samples);
	result_u64(result, counts->dropped);
	result_u64(result, counts->foreign);
	result_u64(result, counts->lost);
	result_u64(result, counts->reads);
	result_u64(result, counts->full_reads);
	result_u64(result, counts->failed_reads);
	result_known(result, counts->period_cycles, counts->period_cycles);
	reasons = add_reasons(result, input, &found);
	lines = add_lines(result, input, &found);
	pcs = add_pcs(result, input, &found);
	result_close(result);
	result_heading(result, "Stalls of kernels");
	if (result_count(result, reasons))
		result_show(result, reasons,
			&(struct result_show){
				.limit = report_rows_shown(input, 20, 8), .noun = "reasons"});
	say_what(result, &found, model);
	show(result, input, "Lines of kernels", lines, "lines");
	show(result, input, "Instructions of kernels", pcs, "instructions");
	return 0;
}

const struct report_section stalls_section = {
	.value = {.key = "stalls",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "what warps of kernels stood at, and why: samples of --pc-sampling"},
	.by = "stalls",
	.summary = "what warps of CUDA kernels wait for, by reason, line and instruction",
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_PCS,
	.make = make,
};
