/* SPDX-License-Identifier: Apache-2.0 */
/* Section: frequent sequences of kernels that operators launch. */
#include <errno.h>
#include <stdlib.h>

#include "analyses/program/sequences.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

static const struct report_column kernel_columns[] = {{.key = "name", .kind = REPORT_TEXT}};
static const struct report_shape kernel_shape = REPORT_SHAPE(kernel_columns);

static const struct report_column row_columns[] = {
	{.title = "Rank",
		.kind = REPORT_INTEGER,
		.hide = REPORT_HIDE_SAME,
		.join = REPORT_JOIN_RANK},
	{.key = "count", .title = "Times", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.key = "gpu_ns",
		.title = "GPU time",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.is_lead = true},
	REPORT_RANK_SPREAD(0),
	{.key = "operator_ns", .title = "CPU time", .kind = REPORT_NS, .join = REPORT_JOIN_SUM},
	{.key = "name",
		.title = "Operator",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.is_name = true,
		.shrinks_to = 16},
	{.title = "Kernels", .kind = REPORT_COUNT, .join = REPORT_JOIN_KEY},
	{.title = "In order", .kind = REPORT_TEXT, .join = REPORT_JOIN_KEY, .shrinks_to = 24},
	{.key = "kernels", .kind = REPORT_LIST, .shape = &kernel_shape, .help = "in order"},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column columns[] = {
	{.key = "rank", .kind = REPORT_INTEGER},
	{.key = "operators", .kind = REPORT_COUNT, .help = "that launched three kernels or more"},
	{.key = "rows", .total = "rows_total", .kind = REPORT_ROWS, .shape = &row_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_row(
	struct result *result, const struct trace_view *view, const struct trace_sequence *sequence)
{
	_cleanup_strbuf_ struct strbuf names = {0};

	for (size_t i = 0; i < sequence->kernel_count; i++)
		strbuf_addf(&names, "%s%s", i ? ", " : "",
			trace_text(view->trace, sequence->kernels[i]));
	result_u64(result, view->rank);
	result_u64(result, sequence->count);
	result_i64(result, sequence->kernel_ns);
	report_add_rank_spread(result);
	result_i64(result, sequence->op_ns);
	result_text(result, trace_text(view->trace, sequence->op));
	result_u64(result, sequence->kernel_count);
	result_text(result, strbuf_cstr(&names));
	result_open(result);
	for (size_t i = 0; i < sequence->kernel_count; i++)
		result_text(result, trace_text(view->trace, sequence->kernels[i]));
	result_close(result);
}

static int add_rank(struct result *result, const struct report_input *input,
	const struct trace_view *view, uint32_t *ret_table)
{
	_cleanup_trace_sequences_ struct trace_sequences sequences = {0};
	int r = trace_sequences_init(
		&sequences, view, &(struct trace_sequence_options){.op = input->trace->choice.op});
	size_t wanted;

	if (r < 0)
		return r;
	result_u64(result, view->rank);
	result_u64(result, sequences.operators);
	*ret_table = result_open(result);
	wanted = report_rows_of_rank(result, input, sequences.items.count, 20, 10);
	for (size_t i = 0; i < wanted; i++)
		add_row(result, view, &sequences.items.items[i]);
	result_close(result);
	return 0;
}

static void show(struct result *result, const struct report_input *input, const uint32_t *tables,
	size_t count)
{
	const struct result_show show = {
		.limit = report_rows_shown(input, 20, 10), .noun = "sequences"};
	uint32_t table = report_join_tables(result, input, tables, count);

	if (!result_count(result, table)) {
		report_nothing(result, input,
			"No operator launched three kernels or more: there are no sequences.");
		return;
	}
	result_heading(result, "Frequent sequences of kernels");
	result_show(result, table, &show);
}

static int make(struct result *result, const struct report_input *input)
{
	size_t count = input->trace->count;
	_cleanup_free_ uint32_t *tables = calloc(count + 1, sizeof(*tables));
	int r = tables ? 0 : -ENOMEM;

	result_open(result);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_rank(result, input, &input->trace->views[i], &tables[i]);
	result_close(result);
	if (r == 0 && result_status(result) == 0)
		show(result, input, tables, count);
	return r;
}

const struct report_section sequences_section = {
	.value = {.key = "sequences", .kind = REPORT_ROWS, .shape = &shape, .help = "by rank"},
	.by = "sequences",
	.summary = "frequent sequences of kernels",
	.needs = REPORT_NEEDS_ROWS,
	.is_extra = true,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
