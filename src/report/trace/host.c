/* SPDX-License-Identifier: Apache-2.0 */
/* Section: what the host did while GPUs waited for it. */
#include <errno.h>

#include "report/trace/report_json.h"
#include "report/trace/trace.h"

static int print_rows(const struct trace_report *report, const struct trace_host_waits *waits)
{
	static const struct table_column columns[] = {
		{.title = "Idle", .right = true},
		{.title = "Gaps", .right = true},
		{.title = "Kind"},
		{.title = "The host was in", .shrinks_to = 16},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	size_t shown = report->limit ? MIN(report->limit, waits->rows.count) : waits->rows.count;
	int r;

	for (size_t i = 0; i < shown; i++) {
		const struct trace_host_waits_row *row = &waits->rows.items[i];

		report_trace_part(&table, row->time_ns, waits->time_ns);
		table_count(&table, row->gaps);
		table_cell(&table, trace_host_waits_kind(row));
		table_cell(&table, row->name ? row->name : "[nothing in the trace]");
	}
	r = table_print(&table, &report->page.terminal, report->page.out);
	report_trace_rest(report, waits->rows.count - shown, "rows");
	return r;
}

static int print_host(const struct trace_report *report)
{
	const struct trace_host_waits *waits = trace_results_host_waits(report->results);

	if (!waits)
		return -ENOMEM;
	if (!waits->rows.count) {
		if (report->alone)
			report_paragraph(&report->page,
				"GPUs did not wait for the host; with --hta-compatible that is not "
				"told, for HTA has nothing like it.",
				0);
		return 0;
	}
	report_heading(&report->page, "What the host did while GPUs waited for it");
	return print_rows(report, waits);
}

static int write_host(const struct trace_report *report, struct json_writer *json)
{
	return trace_json_host(json, report->results, report->limit);
}

const struct report_section host_section = {
	.value.key = "host",
	.by = "host",
	.summary = "what the host did while GPUs waited for it",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_host,
	.write_trace = write_host,
};
