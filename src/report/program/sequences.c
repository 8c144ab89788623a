/* SPDX-License-Identifier: Apache-2.0 */
/* Section: frequent sequences of kernels that operators launch. */
#include "analyses/program/sequences.h"
#include "report/columns.h"
#include "report/sections.h"

static const struct report_column kernel_columns[] = {{.key = "name", .kind = REPORT_TEXT}};
static const struct report_shape kernel_shape = REPORT_SHAPE(kernel_columns);

static const struct report_column row_columns[] = {
	{.title = "Rank", .kind = REPORT_INTEGER, .hide = REPORT_HIDE_SAME},
	{.key = "count", .title = "Times", .kind = REPORT_COUNT},
	{.key = "gpu_ns", .title = "GPU time", .kind = REPORT_NS},
	{.key = "operator_ns", .title = "CPU time", .kind = REPORT_NS},
	{.key = "name",
		.title = "Operator",
		.kind = REPORT_TEXT,
		.is_name = true,
		.shrinks_to = 16},
	{.title = "Kernels", .kind = REPORT_COUNT},
	{.title = "In order", .kind = REPORT_TEXT, .shrinks_to = 24},
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
	result_i64(result, sequence->op_ns);
	result_text(result, trace_text(view->trace, sequence->op));
	result_u64(result, sequence->kernel_count);
	result_text(result, strbuf_cstr(&names));
	result_open(result);
	for (size_t i = 0; i < sequence->kernel_count; i++)
		result_text(result, trace_text(view->trace, sequence->kernels[i]));
	result_close(result);
}

static int add_rank(
	struct result *result, const struct report_input *input, const struct trace_view *view)
{
	const struct result_show show = {
		.limit = report_rows_shown(input, 20, 10), .noun = "sequences"};
	_cleanup_trace_sequences_ struct trace_sequences sequences = {0};
	int r = trace_sequences_init(
		&sequences, view, &(struct trace_sequence_options){.op = input->trace->choice.op});
	uint32_t table;
	size_t wanted;

	if (r < 0)
		return r;
	result_u64(result, view->rank);
	result_u64(result, sequences.operators);
	table = result_open(result);
	wanted = report_rows_wanted(result, input, sequences.items.count);
	for (size_t i = 0; i < wanted; i++)
		add_row(result, view, &sequences.items.items[i]);
	result_close(result);
	if (!result_count(result, table))
		return 0;
	result_heading(result, "Frequent sequences of kernels");
	if (input->trace->count > 1)
		result_sentencef(result, 2, "Rank %u:", view->rank);
	result_show(result, table, &show);
	return 0;
}

static int make(struct result *result, const struct report_input *input)
{
	int r = 0;

	result_open(result);
	for (size_t i = 0; r == 0 && i < input->trace->count; i++)
		r = add_rank(result, input, &input->trace->views[i]);
	result_close(result);
	if (r < 0 || result->blocks.count)
		return r;
	return report_nothing(result, input,
		"No operator launched three kernels or more: there are no sequences.");
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
