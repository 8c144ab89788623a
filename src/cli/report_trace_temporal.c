/* SPDX-License-Identifier: Apache-2.0 */
/* Sections: what devices did over time, and how far communication ran beside computing. */
#include <errno.h>

#include "analyses/trace_temporal.h"
#include "cli/report_trace.h"
#include "exporters/trace_report_json.h"

static void add_share(struct table *table, int64_t part_ns, int64_t whole_ns)
{
	if (whole_ns)
		table_cellf(table, "%.2f %%", 100.0 * (double)part_ns / (double)whole_ns);
	else
		table_cell(table, "");
}

static void add_temporal_rows(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct trace_temporal *temporal)
{
	for (uint32_t i = 0; i < temporal->devices.count; i++) {
		const struct trace_temporal_device *device = &temporal->devices.items[i];
		const int64_t parts[] = {
			trace_temporal_idle_ns(device),
			device->by_kind_ns[TRACE_COMPUTE],
			trace_temporal_non_compute_ns(device),
		};
		int64_t span_ns = trace_temporal_span_ns(device);

		report_trace_cell(table, report, view, i);
		table_duration(table, (uint64_t)span_ns);
		for (size_t part = 0; part < ARRAY_SIZE(parts); part++) {
			table_duration(table, (uint64_t)MAX(parts[part], (int64_t)0));
			add_share(table, parts[part], span_ns);
		}
	}
}

static int print_temporal(const struct trace_report *report)
{
	static const struct table_column columns[] = {
		{.title = "GPU"},
		{.title = "Time", .right = true},
		{.title = "Idle", .right = true},
		{.title = "", .right = true},
		{.title = "Computing", .right = true},
		{.title = "", .right = true},
		{.title = "Other work", .right = true},
		{.title = "", .right = true},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	int r = 0;

	if (!report_trace_has_works(report))
		return 0;
	report_heading(&report->page, "Temporal breakdown (from the first work to the last)");
	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_trace_temporal_ struct trace_temporal temporal = {0};

		r = trace_temporal_init(&temporal, &report->views[i]);
		if (r == 0)
			add_temporal_rows(&table, report, &report->views[i], &temporal);
	}
	return r ?: table_print(&table, &report->page.terminal, report->page.out);
}

static int write_temporal(const struct trace_report *report, struct json_writer *json)
{
	int r = 0;

	json_begin_array(json);
	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_trace_temporal_ struct trace_temporal temporal = {0};

		r = trace_temporal_init(&temporal, &report->views[i]);
		if (r == 0)
			trace_json_temporal(json, &report->views[i], &temporal);
	}
	json_end_array(json);
	return r;
}

const struct trace_section temporal_section = {
	.name = "temporal",
	.summary = "computing, other work and idle time of GPUs",
	.print = print_temporal,
	.write = write_temporal,
};
