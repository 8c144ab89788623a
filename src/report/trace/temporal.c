/* SPDX-License-Identifier: Apache-2.0 */
/* Sections: what devices did over time, and how far communication ran beside computing. */
#include <errno.h>

#include "report/trace/report_json.h"
#include "report/trace/trace.h"

/* The rows of a table that is about devices' times. */
typedef void (*add_device)(struct table *table, const struct trace_temporal_device *device);

static int print_devices(
	const struct trace_report *report, struct table *table, const char *heading, add_device add)
{
	report_heading(&report->page, heading);
	for (size_t i = 0; i < report->count; i++) {
		const struct trace_temporal *temporal = trace_results_temporal(report->results, i);

		if (!temporal)
			return -ENOMEM;
		for (uint32_t device = 0; device < temporal->devices.count; device++) {
			report_trace_cell(table, report, &report->views[i], device);
			add(table, &temporal->devices.items[device]);
		}
	}
	return table_print(table, &report->page.terminal, report->page.out);
}

static void add_temporal(struct table *table, const struct trace_temporal_device *device)
{
	const int64_t parts[] = {
		trace_temporal_idle_ns(device),
		device->by_kind_ns[TRACE_COMPUTE],
		trace_temporal_non_compute_ns(device),
	};
	int64_t span_ns = trace_temporal_span_ns(device);

	report_trace_time(table, span_ns);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		report_trace_part(table, parts[i], span_ns);
}

static int print_temporal(const struct trace_report *report)
{
	static const struct table_column columns[] = {
		{.title = "GPU"},
		{.title = "Kernel time", .right = true},
		{.title = "Idle", .right = true},
		{.title = "Compute", .right = true},
		{.title = "Non-compute", .right = true},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};

	if (!report_trace_has_works(report))
		return 0;
	return print_devices(report, &table,
		"Temporal breakdown (kernel time: from the first work to the end of the last)",
		add_temporal);
}

static int write_temporal(const struct trace_report *report, struct json_writer *json)
{
	return report_trace_write(report, json, trace_json_temporal);
}

const struct report_section temporal_section = {
	.value.key = "temporal",
	.by = "temporal",
	.summary = "computing, other work and idle time of GPUs",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_temporal,
	.write_trace = write_temporal,
};

/* ---- overlap ---- */

static void add_overlap(struct table *table, const struct trace_temporal_device *device)
{
	int64_t all_ns = device->by_kind_ns[TRACE_COMMUNICATION];
	int64_t hidden_ns = device->communication_beside_compute_ns;

	report_trace_time(table, all_ns);
	report_trace_part(table, hidden_ns, all_ns);
	report_trace_part(table, all_ns - hidden_ns, trace_temporal_span_ns(device));
}

static bool communicates(const struct trace_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		array_foreach (&report->views[i].works, work) {
			if (work->kind == TRACE_COMMUNICATION)
				return true;
		}
	}
	if (report->alone)
		report_paragraph(&report->page,
			"There is no communication: no kernel of a library of collectives is in "
			"the trace, or none that is known; --comm-kernels adds names.",
			0);
	return false;
}

static int print_overlap(const struct trace_report *report)
{
	static const struct table_column columns[] = {
		{.title = "GPU"},
		{.title = "Communication", .right = true},
		{.title = "Beside compute", .right = true},
		{.title = "Exposed, of kernel time", .right = true},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};

	if (!communicates(report))
		return 0;
	return print_devices(report, &table,
		"Communication\xe2\x80\x93"
		"computation overlap",
		add_overlap);
}

static int write_overlap(const struct trace_report *report, struct json_writer *json)
{
	return report_trace_write(report, json, trace_json_overlap);
}

const struct report_section overlap_section = {
	.value.key = "overlap",
	.by = "overlap",
	.summary = "how far communication ran beside computing",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_overlap,
	.write_trace = write_overlap,
};
