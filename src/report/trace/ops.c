/* SPDX-License-Identifier: Apache-2.0 */
/* Section: operators and the device work that they launch. */
#include <errno.h>
#include <math.h>

#include "analyses/program/ops.h"
#include "model/shorten.h"
#include "report/trace/report_json.h"
#include "report/trace/trace.h"

#define MAX_WORKS 4 /* of a sequence that are printed */

static void add_sequence(struct table *table, const struct trace_view *view,
	const struct trace_ops *ops, const struct trace_ops_row *row)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (uint32_t i = 0; i < MIN(row->works, (uint32_t)MAX_WORKS); i++) {
		const char *name = trace_text(view->trace, ops->sequences.items[row->first + i]);

		strbuf_add(&text, i ? " \xe2\x86\x92 " : "");
		shorten_name(&text, name, 40);
	}
	if (row->works > MAX_WORKS)
		strbuf_addf(&text, " \xe2\x80\xa6 %u in all", row->works);
	table_cell(table, strbuf_cstr(&text));
}

static void add_row(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct trace_ops *ops, const struct trace_ops_row *row)
{
	double count = (double)row->count;

	if (report->count > 1)
		table_cellf(table, "%u", view->rank);
	report_trace_time(table, row->work_ns);
	table_count(table, row->count);
	report_trace_figure(table, row->name ? (double)row->launch_delay_ns / count : (double)NAN);
	report_trace_figure(table, (double)row->work_delay_ns / count);
	table_cell(table, row->name ? trace_text(view->trace, row->name) : "[no operator]");
	add_sequence(table, view, ops, row);
}

static const struct table_column op_columns[] = {
	{.title = "Rank", .right = true}, /* where there are several */
	{.title = "GPU time", .right = true},
	{.title = "Count", .right = true},
	{.title = "To launch", .right = true},
	{.title = "To work", .right = true},
	{.title = "Operator", .is_text = true, .shrinks_to = 16, .largest = 40},
	{.title = "Kernels", .is_text = true, .dim = true, .shrinks_to = 12},
};

/* The same number of rows of each rank. */
static int print_operators(const struct trace_report *report)
{
	size_t skipped = report->count > 1 ? 0 : 1, rest = 0;
	_cleanup_table_ struct table table = {
		.columns = op_columns + skipped,
		.column_count = ARRAY_SIZE(op_columns) - skipped,
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_trace_ops_ struct trace_ops ops = {0};
		size_t limit = report->limit ? (report->limit + report->count - 1) / report->count
					     : SIZE_MAX;
		size_t shown;

		r = trace_ops_init(&ops, &report->views[i]);
		shown = MIN(limit, ops.rows.count);
		rest += ops.rows.count - shown;
		for (size_t row = 0; row < shown; row++)
			add_row(&table, report, &report->views[i], &ops, &ops.rows.items[row]);
	}
	if (r == 0 && !table.cells.count && report->alone)
		report_paragraph(&report->page,
			"There are no operators that launch device work in the trace.", 0);
	if (r < 0 || !table.cells.count)
		return r;
	report_heading(&report->page,
		"Operators and the kernels that they launch (means of: operator's begin to "
		"launch, launch to kernel)");
	r = table_print(&table, &report->page.terminal, report->page.out);
	report_trace_rest(report, rest, "sequences");
	return r;
}

static int write_operators(const struct trace_report *report, struct json_writer *json)
{
	return report_trace_write(report, json, trace_json_operators);
}

const struct report_section operators_section = {
	.value.key = "operators",
	.by = "operators",
	.summary = "operators with the kernels that they launch, and the delays",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_operators,
	.write_trace = write_operators,
};
