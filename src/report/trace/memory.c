/* SPDX-License-Identifier: Apache-2.0 */
/* Section: memory over time, and which operators asked for it. */
#include <errno.h>
#include <inttypes.h>

#include "analyses/memory/memory.h"
#include "report/trace/path_json.h"
#include "report/trace/trace.h"

static void add_bytes(struct table *table, int64_t bytes)
{
	if (bytes == TRACE_NO_NUMBER || bytes < 0)
		table_cell(table, "");
	else
		table_bytes(table, (uint64_t)bytes);
}

static void add_devices(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct trace_memory_use *use)
{
	array_foreach (&use->devices, device) {
		char name[64];

		trace_memory_device_name(device, name, sizeof(name));
		if (report->count > 1)
			table_cellf(table, "rank %" PRIu32 " %s", view->rank, name);
		else
			table_cell(table, name);
		add_bytes(table, device->peak);
		add_bytes(table, device->peak_reserved);
		table_count(table, device->allocations);
		table_bytes(table, device->allocated_bytes);
		table_count(table, device->releases);
		table_bytes(table, device->released_bytes);
		table_bytes(table, device->unreleased_bytes);
	}
}

static int print_operators(const struct trace_report *report, const struct trace_view *view,
	const struct trace_memory_device *device)
{
	static const struct table_column columns[] = {
		{.title = "Bytes", .right = true},
		{.title = "Allocations", .right = true},
		{.title = "Operator", .shrinks_to = 16},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	size_t count = device->ops.count;
	size_t shown = report->limit ? MIN(report->limit, count) : count;
	char name[64];
	int r;

	trace_memory_device_name(device, name, sizeof(name));
	strbuf_addf(report->page.out, "\nAllocated on %s by:\n", name);
	for (size_t i = 0; i < shown; i++) {
		const struct trace_memory_op *op = &device->ops.items[i];

		table_bytes(&table, op->bytes);
		table_count(&table, op->allocations);
		table_cell(&table,
			op->name ? trace_text(view->trace, op->name) : "[outside of operators]");
	}
	r = table_print(&table, &report->page.terminal, report->page.out);
	report_trace_rest(report, count - shown, "operators");
	return r;
}

static int print_details(const struct trace_report *report)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_trace_memory_ struct trace_memory_use use = {0};

		r = trace_memory_init(&use, report->views[i].trace);
		array_foreach (&use.devices, device)
			r = r ?: print_operators(report, &report->views[i], device);
	}
	return r;
}

static int print_memory(const struct trace_report *report)
{
	static const struct table_column columns[] = {
		{.title = "Device"},
		{.title = "Peak", .right = true},
		{.title = "Reserved", .right = true},
		{.title = "Allocations", .right = true},
		{.title = "", .right = true},
		{.title = "Releases", .right = true},
		{.title = "", .right = true},
		{.title = "Unreleased", .right = true},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	int r = 0;

	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_trace_memory_ struct trace_memory_use use = {0};

		r = trace_memory_init(&use, report->views[i].trace);
		if (r == 0)
			add_devices(&table, report, &report->views[i], &use);
	}
	if (r < 0)
		return r;
	if (!table.cells.count) {
		if (report->alone)
			report_paragraph(&report->page,
				"There are no memory events: profile with profile_memory=True.", 0);
		return 0;
	}
	report_heading(&report->page, "Memory");
	r = table_print(&table, &report->page.terminal, report->page.out);
	return report->alone ? r ?: print_details(report) : r;
}

static int write_memory(const struct trace_report *report, struct json_writer *json)
{
	int r = 0;

	json_begin_array(json);
	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_trace_memory_ struct trace_memory_use use = {0};

		r = trace_memory_init(&use, report->views[i].trace);
		if (r == 0)
			trace_json_memory(
				json, &report->views[i], &use, report->limit, report->alone);
	}
	json_end_array(json);
	return r;
}

const struct report_section memory_section = {
	.value.key = "memory",
	.by = "memory",
	.summary = "memory over time, by device and operator",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_memory,
	.write_trace = write_memory,
};
