/* SPDX-License-Identifier: Apache-2.0 */
/* Section: frequent sequences of kernels that operators launch. */
#include <errno.h>
#include <inttypes.h>

#include "analyses/program/sequences.h"
#include "report/trace/path_json.h"
#include "report/trace/trace.h"

static int find_sequences(const struct trace_report *report, const struct trace_view *view,
	struct trace_sequences *sequences)
{
	return trace_sequences_init(
		sequences, view, &(struct trace_sequence_options){.op = report->choice.op});
}

/* "3 kernels: copy, gemm, bias" */
static void add_kernels(
	struct table *table, const struct trace_view *view, const struct trace_sequence *sequence)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (size_t i = 0; i < sequence->kernel_count; i++)
		strbuf_addf(&text, "%s%s", i ? ", " : "",
			trace_text(view->trace, sequence->kernels[i]));
	table_cell(table, strbuf_cstr(&text));
}

static size_t add_rows(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct trace_sequences *sequences)
{
	size_t count = sequences->items.count;
	size_t shown = report->limit ? MIN(report->limit, count) : count;

	for (size_t i = 0; i < shown; i++) {
		const struct trace_sequence *sequence = &sequences->items.items[i];

		if (report->count > 1)
			table_cellf(table, "%" PRIu32, view->rank);
		table_count(table, sequence->count);
		report_trace_time(table, sequence->kernel_ns);
		report_trace_time(table, sequence->op_ns);
		table_cell(table, trace_text(view->trace, sequence->op));
		table_count(table, sequence->kernel_count);
		add_kernels(table, view, sequence);
	}
	return count - shown;
}

static int print_sequences(const struct trace_report *report)
{
	static const struct table_column columns[] = {
		{.title = "Rank", .right = true},
		{.title = "Times", .right = true},
		{.title = "GPU time", .right = true},
		{.title = "CPU time", .right = true},
		{.title = "Operator", .shrinks_to = 16},
		{.title = "Kernels", .right = true},
		{.title = "In order", .is_text = true, .shrinks_to = 24},
	};
	size_t skipped = report->count > 1 ? 0 : 1, rest = 0;
	_cleanup_table_ struct table table = {
		.columns = columns + skipped, .column_count = ARRAY_SIZE(columns) - skipped};
	int r = 0;

	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_trace_sequences_ struct trace_sequences sequences = {0};

		r = find_sequences(report, &report->views[i], &sequences);
		if (r == 0)
			rest += add_rows(&table, report, &report->views[i], &sequences);
	}
	if (r < 0)
		return r;
	if (!table.cells.count) {
		report_paragraph(&report->page,
			"No operator launched three kernels or more: there are no sequences.", 0);
		return 0;
	}
	report_heading(&report->page, "Frequent sequences of kernels");
	r = table_print(&table, &report->page.terminal, report->page.out);
	report_trace_rest(report, rest, "sequences");
	return r;
}

static int write_sequences(const struct trace_report *report, struct json_writer *json)
{
	int r = 0;

	json_begin_array(json);
	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_trace_sequences_ struct trace_sequences sequences = {0};

		r = find_sequences(report, &report->views[i], &sequences);
		if (r == 0)
			trace_json_sequences(json, &report->views[i], &sequences, report->limit);
	}
	json_end_array(json);
	return r;
}

const struct report_section sequences_section = {
	.value.key = "sequences",
	.by = "sequences",
	.summary = "frequent sequences of kernels",
	.needs = REPORT_NEEDS_TRACE,
	.is_extra = true,
	.print_trace = print_sequences,
	.write_trace = write_sequences,
};
