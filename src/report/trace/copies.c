/* SPDX-License-Identifier: Apache-2.0 */
/* Section: copies and fills of memory, and how fast they were. */
#include <errno.h>

#include "analyses/device/copies.h"
#include "report/trace/report_json.h"
#include "report/trace/trace.h"

static void add_gbps(struct table *table, bool known, double gbps)
{
	if (known)
		table_cellf(table, "%.3g", gbps);
	else
		table_cell(table, "");
}

/* HTA's summary, or ours. */
static void add_row(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct trace_copies_row *row)
{
	bool known = row->count > row->without_bytes;

	if (report->count > 1)
		table_cellf(table, "%u", view->rank);
	table_count(table, row->count);
	if (known)
		table_bytes(table, row->bytes);
	else
		table_cell(table, "");
	report_trace_time(table, (int64_t)row->time_ns);
	if (view->options.hta_compatible) {
		add_gbps(table, true, row->points.mean);
		add_gbps(table, true, row->points.least);
		add_gbps(table, true, row->points.most);
	} else {
		add_gbps(table, known, trace_copies_gbps(row));
		add_gbps(table, known, row->least_gbps);
		add_gbps(table, known, row->most_gbps);
	}
	table_cellf(table, "%.*s", (int)row->name_length, row->name);
}

static const struct table_column copy_columns[] = {
	{.title = "Rank", .right = true}, /* where there are several */
	{.title = "Count", .right = true},
	{.title = "Bytes", .right = true},
	{.title = "Time", .right = true},
	{.title = "GB/s", .right = true},
	{.title = "Min", .right = true},
	{.title = "Max", .right = true},
	{.title = "Copy", .is_text = true, .shrinks_to = 12},
};

static int print_bandwidth(const struct trace_report *report)
{
	size_t skipped = report->count > 1 ? 0 : 1;
	_cleanup_table_ struct table table = {
		.columns = copy_columns + skipped,
		.column_count = ARRAY_SIZE(copy_columns) - skipped,
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_trace_copies_ struct trace_copies copies = {0};

		r = trace_copies_init(&copies, &report->views[i]);
		array_foreach (&copies.rows, row)
			add_row(&table, report, &report->views[i], row);
	}
	if (r == 0 && !table.cells.count && report->alone)
		report_paragraph(
			&report->page, "There are no copies or fills of memory in the trace.", 0);
	if (r < 0 || !table.cells.count)
		return r;
	report_heading(&report->page, "Memory bandwidth");
	return table_print(&table, &report->page.terminal, report->page.out);
}

static int write_bandwidth(const struct trace_report *report, struct json_writer *json)
{
	return report_trace_write(report, json, trace_json_bandwidth);
}

const struct report_section bandwidth_section = {
	.value.key = "bandwidth",
	.by = "bandwidth",
	.summary = "how fast copies and fills of memory were",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_bandwidth,
	.write_trace = write_bandwidth,
};
