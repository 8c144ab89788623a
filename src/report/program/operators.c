/* SPDX-License-Identifier: Apache-2.0 */
/* Section: operators and the device work that they launch. */
#include <math.h>

#include "analyses/program/ops.h"
#include "model/shorten.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

#define MOST_WORKS   4 /* of a sequence that the terminal shows */
#define NAME_COLUMNS 40

static const struct report_column name_columns[] = {{.key = "name", .kind = REPORT_TEXT}};
static const struct report_shape name_shape = REPORT_SHAPE(name_columns);

static const struct report_column columns[] = {
	REPORT_RANK_COLUMN,
	{.key = "gpu_ns",
		.title = "GPU time",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.is_lead = true},
	REPORT_RANK_SPREAD(0),
	{.key = "count", .title = "Count", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.key = "mean_launch_delay_ns",
		.title = "To launch",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.help = "from the operator's begin to its first launch"},
	{.key = "mean_work_delay_ns",
		.title = "To work",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.help = "from the launch to the work"},
	{.key = "name",
		.title = "Operator",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.unknown = "[no operator]",
		.shrinks_to = 16,
		.largest = NAME_COLUMNS},
	{.title = "Kernels",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.is_dim = true,
		.shrinks_to = 12},
	{.key = "kernels", .kind = REPORT_LIST, .shape = &name_shape, .help = "in order"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* "copy → gemm → bias … 7 in all". */
static void add_sequence(struct result *result, const struct trace *trace,
	const struct trace_ops *ops, const struct trace_ops_row *row)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (uint32_t i = 0; i < MIN(row->works, (uint32_t)MOST_WORKS); i++) {
		strbuf_add(&text, i ? " \xe2\x86\x92 " : "");
		shorten_kernel(&text, trace_text(trace, ops->sequences.items[row->first + i]),
			NAME_COLUMNS);
	}
	if (row->works > MOST_WORKS)
		strbuf_addf(&text, " \xe2\x80\xa6 %u in all", row->works);
	result_text(result, strbuf_cstr(&text));
	result_open(result);
	for (uint32_t i = row->first; i < row->first + row->works; i++)
		result_text(result, trace_text(trace, ops->sequences.items[i]));
	result_close(result);
}

static void add_row(struct result *result, const struct trace_view *view,
	const struct trace_ops *ops, const struct trace_ops_row *row)
{
	double count = (double)row->count;

	result_u64(result, view->rank);
	result_i64(result, row->work_ns);
	report_add_rank_spread(result);
	result_u64(result, row->count);
	result_number(result, row->name ? (double)row->launch_delay_ns / count : (double)NAN);
	result_number(result, (double)row->work_delay_ns / count);
	result_text(result, row->name ? trace_text(view->trace, row->name) : NULL);
	add_sequence(result, view->trace, ops, row);
}

static int make(struct result *result, const struct report_input *input)
{
	uint32_t table = result_open(result);

	for (size_t i = 0; i < input->trace->count; i++) {
		const struct trace_view *view = &input->trace->views[i];
		_cleanup_trace_ops_ struct trace_ops ops = {0};
		int r = input->trace->definitions->operators(&ops, view);
		size_t wanted;

		if (r < 0)
			return r;
		wanted = report_rows_of_rank(result, input, ops.rows.count, 20, 10);
		for (size_t row = 0; row < wanted; row++)
			add_row(result, view, &ops, &ops.rows.items[row]);
	}
	result_close(result);
	if (!result_count(result, table))
		return report_nothing(result, input,
			"There are no operators that launch device work in the trace.");
	result_heading(result,
		"Operators and the kernels that they launch (means of: operator's begin to launch, "
		"launch to kernel)");
	result_show(result, report_join_ranks(result, input, table),
		&(struct result_show){
			.limit = report_rows_shown_of_ranks(input, 20, 10), .noun = "sequences"});
	return 0;
}

const struct report_section operators_section = {
	.value = {.key = "operators",
		.total = "operators_total",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "operators with the kernels that they launch, by rank"},
	.by = "operators",
	.summary = "operators with the kernels that they launch, and the delays",
	.needs = REPORT_NEEDS_ROWS,
	.is_extra_of_recordings = true,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
