/* SPDX-License-Identifier: Apache-2.0 */
/* Section: what GPUs counted (PM sampling) while kernels ran, in operators, ranges and steps. */
#include "analyses/device/kernel_counters.h"

#include <errno.h>
#include <stdlib.h>

#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

/* What stands for a figure that no sample has. */
#define NOT_COUNTED "\xe2\x80\x93"
#define PERCENT     100.0

#define SHARE_OF_PEAK(of_key, of_title, of_help)                                                   \
	{                                                                                          \
		.key = (of_key), .title = (of_title), .kind = REPORT_SHARE,                        \
		.join = REPORT_JOIN_MEAN, .hide = REPORT_HIDE_UNKNOWN, .unknown = NOT_COUNTED,     \
		.decimals = 1, .help = (of_help)                                                   \
	}
#define BYTES_A_SECOND(of_key, of_title)                                                           \
	{                                                                                          \
		.key = (of_key), .title = (of_title), .kind = REPORT_NUMBER,                       \
		.join = REPORT_JOIN_MEAN, .hide = REPORT_HIDE_UNKNOWN, .unknown = NOT_COUNTED,     \
		.digits = 3                                                                        \
	}

/* By enum wire_pm_counter. */
#define COUNTER_COLUMNS                                                                            \
	SHARE_OF_PEAK("sm_busy", "SM busy",                                                        \
		"this and the next ones: mean over the time with samples; null: not counted"),     \
		SHARE_OF_PEAK("tensor_busy", "Tensor pipe", NULL),                                 \
		SHARE_OF_PEAK("dram_read", "DRAM read", "of the peak"),                            \
		SHARE_OF_PEAK("dram_write", "DRAM write", "of the peak"),                          \
		BYTES_A_SECOND("dram_read_gbps", "DRAM read GB/s"),                                \
		BYTES_A_SECOND("dram_write_gbps", "DRAM write GB/s"),                              \
		BYTES_A_SECOND("nvlink_received_gbps", "NVLink in"),                               \
		BYTES_A_SECOND("nvlink_sent_gbps", "NVLink out"),                                  \
		BYTES_A_SECOND("pcie_read_gbps", "PCIe read"),                                     \
		BYTES_A_SECOND("pcie_write_gbps", "PCIe write")

#define DEVICE_COLUMNS                                                                             \
	{.title = "GPU",                                                                           \
		.kind = REPORT_TEXT,                                                               \
		.hide = REPORT_HIDE_SAME,                                                          \
		.join = REPORT_JOIN_NUMBER_OF_RANKS},                                              \
		{.key = "rank", .kind = REPORT_INTEGER, .join = REPORT_JOIN_RANK},                 \
		{.key = "device", .kind = REPORT_INTEGER},                                         \
	{                                                                                          \
		.key = "device_name", .kind = REPORT_TEXT                                          \
	}

#define SAMPLES_COLUMN                                                                             \
	{                                                                                          \
		.key = "samples", .title = "Samples", .kind = REPORT_COUNT,                        \
		.join = REPORT_JOIN_SUM, .help = "that overlap it: those that figures are of"      \
	}

static const struct report_column work_columns[] = {
	{.key = "sum_ns", .title = "Total", .kind = REPORT_NS, .join = REPORT_JOIN_SUM},
	{.key = "count", .title = "Count", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.key = "measured_ns",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.help = "it ran while there was a sample; what overlaps counts once"},
	SAMPLES_COLUMN,
	{.key = "alone_share",
		.title = "Alone",
		.kind = REPORT_SHARE,
		.join = REPORT_JOIN_MEAN,
		.unknown = NOT_COUNTED,
		.decimals = 1,
		.help = "of the time of these samples: it ran, and nothing else on the device; the "
			"lower, the more the figures are those of other work"},
	COUNTER_COLUMNS,
	DEVICE_COLUMNS,
	{.key = "name",
		.title = "Name",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.is_name = true,
		.shrinks_to = 16},
};
static const struct report_shape work_shape = REPORT_SHAPE(work_columns);

static const struct report_column step_columns[] = {
	{.key = "number", .title = "Step", .kind = REPORT_INTEGER},
	{.key = "duration_ns", .title = "Duration", .kind = REPORT_NS},
	{.key = "measured_ns", .kind = REPORT_NS, .help = "of it there were samples"},
	SAMPLES_COLUMN,
	COUNTER_COLUMNS,
	{.title = "GPU", .kind = REPORT_TEXT, .hide = REPORT_HIDE_SAME},
	{.key = "rank", .title = "Rank", .kind = REPORT_INTEGER, .hide = REPORT_HIDE_SAME},
	{.key = "device", .kind = REPORT_INTEGER},
	{.key = "device_name", .kind = REPORT_TEXT},
	{.key = "pid", .title = "PID", .kind = REPORT_INTEGER, .hide = REPORT_HIDE_SAME},
};
static const struct report_shape step_shape = REPORT_SHAPE(step_columns);

static const struct report_column columns[] = {
	{.key = "samples", .kind = REPORT_COUNT, .help = "of all devices"},
	{.key = "unplaced_values",
		.kind = REPORT_COUNT,
		.help = "of devices that are not known, or did no work: in no row"},
	{.key = "kernels",
		.total = "kernels_total",
		.kind = REPORT_ROWS,
		.shape = &work_shape,
		.help = "kernels, copies and fills by name and device: by rank, then most time "
			"first"},
	{.key = "ranges",
		.total = "ranges_total",
		.kind = REPORT_ROWS,
		.shape = &work_shape,
		.help = "work launched in operators and ranges, those inside them included: by "
			"rank, then most time first"},
	{.key = "steps",
		.total = "steps_total",
		.kind = REPORT_ROWS,
		.shape = &step_shape,
		.help = "all time of each step, on the devices that its process sampled"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- rows ---- */

static void add_counters(struct result *result, const struct kernel_counters_row *row)
{
	for (unsigned i = 0; i < WIRE_PM_MAX; i++)
		result_number(result,
			i < WIRE_PM_DRAM_READ_BYTES ? row->means[i] / PERCENT : row->means[i]);
}

static void add_work(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct kernel_counters_row *row)
{
	result_i64(result, row->total_ns);
	result_u64(result, row->count);
	result_i64(result, row->measured_ns);
	result_u64(result, row->samples);
	result_share(result, (double)row->alone_ns, (double)row->samples_ns);
	add_counters(result, row);
	columns_add_device(result, input->trace, view, row->device);
	result_text(result, row->name);
}

static void add_step(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct kernel_counters_row *row)
{
	result_u64(result, row->step);
	result_i64(result, row->total_ns);
	result_i64(result, row->measured_ns);
	result_u64(result, row->samples);
	add_counters(result, row);
	columns_add_device(result, input->trace, view, row->device);
	columns_add_number(result, row->pid);
}

/* A table of all ranks' rows. */
static int add_table(struct result *result, const struct report_input *input,
	const struct gpu_samples *samples, enum kernel_counters_by by, uint32_t *ret_table)
{
	int r = 0;

	*ret_table = result_open(result);
	for (size_t i = 0; r == 0 && i < input->trace->count; i++) {
		const struct trace_view *view = &input->trace->views[i];
		_cleanup_kernel_counters_ struct kernel_counters counters = {0};
		size_t wanted;

		r = kernel_counters_init(&counters, view, &samples[i], by);
		wanted = report_rows_of_rank(result, input, counters.rows.count, 20, 8);
		for (size_t row = 0; row < wanted; row++) {
			if (by == KERNEL_COUNTERS_BY_STEP)
				add_step(result, input, view, &counters.rows.items[row]);
			else
				add_work(result, input, view, &counters.rows.items[row]);
		}
	}
	result_close(result);
	return r;
}

/* ---- the section ---- */

static void show(struct result *result, const struct report_input *input, const char *heading,
	uint32_t table, const char *noun)
{
	if (!result_count(result, table))
		return;
	result_heading(result, heading);
	result_show(result, report_join_ranks(result, input, table),
		&(struct result_show){
			.limit = report_rows_shown_of_ranks(input, 20, 8), .noun = noun});
}

/* A refusal of --pm-sampling is said in its place. */
static int say_nothing(
	struct result *result, const struct report_input *input, uint64_t unplaced_values)
{
	array_foreach (&input->view->model->device_notes, note) {
		if (note->note == WIRE_NOTE_PM_SAMPLING)
			return report_nothing(result, input, note->text);
	}
	return report_nothing(result, input,
		unplaced_values ? "What GPUs counted is of GPUs that did no work, or are not "
				  "known: --by counter has it."
				: "There is nothing that GPUs counted: sonde record --pm-sampling "
				  "has that of CUDA's GPUs.");
}

/* Of each rank. */
static int find_samples(const struct report_input *input, struct gpu_samples *samples,
	uint64_t *ret_samples, uint64_t *ret_unplaced)
{
	int r = 0;

	*ret_samples = *ret_unplaced = 0;
	for (size_t i = 0; r == 0 && i < input->trace->count; i++) {
		r = gpu_samples_init(&samples[i], &input->trace->views[i]);
		*ret_samples += samples[i].count;
		*ret_unplaced += samples[i].unplaced;
	}
	return r;
}

static int make_tables(struct result *result, const struct report_input *input,
	const struct gpu_samples *samples, uint64_t count, uint64_t unplaced)
{
	uint32_t kernels = 0, ranges = 0, steps = 0;
	int r;

	result_open(result);
	result_u64(result, count);
	result_u64(result, unplaced);
	r = add_table(result, input, samples, KERNEL_COUNTERS_BY_NAME, &kernels);
	if (r == 0)
		r = add_table(result, input, samples, KERNEL_COUNTERS_BY_RANGE, &ranges);
	if (r == 0)
		r = add_table(result, input, samples, KERNEL_COUNTERS_BY_STEP, &steps);
	result_close(result);
	if (r < 0)
		return r;
	show(result, input, "What GPUs counted while kernels ran", kernels, "kernels");
	result_sentence(result, 2,
		"Means over the time in which they ran; NVLink and PCIe in GB/s. Alone: of the time of their samples, "
		"nothing else ran on the GPU; the lower it is, the more the figures are those of "
		"other work, too.");
	show(result, input, "What GPUs counted while work of operators and ranges ran", ranges,
		"operators and ranges");
	show(result, input, "What GPUs counted in steps", steps, "steps");
	return 0;
}

static int make(struct result *result, const struct report_input *input)
{
	size_t ranks = input->trace->count;
	struct gpu_samples *samples;
	uint64_t count, unplaced;
	int r;

	if (!report_is_own(input))
		return report_nothing(
			result, input, "Other tools have no table of what GPUs counted.");
	samples = calloc(MAX(ranks, (size_t)1), sizeof(*samples));
	if (!samples)
		return -ENOMEM;
	r = find_samples(input, samples, &count, &unplaced);
	if (r == 0 && !count)
		r = say_nothing(result, input, unplaced);
	else if (r == 0)
		r = make_tables(result, input, samples, count, unplaced);
	for (size_t i = 0; i < ranks; i++)
		gpu_samples_done(&samples[i]);
	free(samples);
	return r;
}

const struct report_section kernel_counters_section = {
	.value = {.key = "kernel_counters",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "what GPUs counted (--pm-sampling) while kernels, operators, ranges and "
			"steps ran"},
	.by = "kernel-counters",
	.summary = "what GPUs counted while kernels, operators, ranges and steps ran",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_COUNTERS,
	.make = make,
};
