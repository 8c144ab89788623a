/* SPDX-License-Identifier: Apache-2.0 */
/* Section: why devices, and alone why streams, were idle. */
#include <errno.h>

#include "report/trace/report_json.h"
#include "report/trace/trace.h"

static const char *const titles[TRACE_IDLE_CAUSE_MAX] = {
	[TRACE_IDLE_HOST] = "Host wait",
	[TRACE_IDLE_BLOCKED] = "Blocking call",
	[TRACE_IDLE_LAUNCH] = "Launch",
	[TRACE_IDLE_KERNEL] = "Kernel wait",
	[TRACE_IDLE_OTHER] = "Other",
	[TRACE_IDLE_UNKNOWN] = "Unknown",
};

/* One row for each device: its idle time, and the shares of the causes. */
static int add_devices(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct trace_idle *idle)
{
	array_foreach (&idle->places, place) {
		if (place->stream != MODEL_NONE)
			continue;
		report_trace_cell(table, report, view, place->device);
		report_trace_time(table, place->idle_ns);
		for (int cause = 0; cause < TRACE_IDLE_CAUSE_MAX; cause++)
			report_trace_share(table, place->by_cause_ns[cause], place->idle_ns);
	}
	return 0;
}

/* One row for each cause of a place. */
static int add_causes(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct trace_idle *idle,
	const struct trace_idle_place *place)
{
	struct trace_describe gaps;

	for (int cause = 0; cause < TRACE_IDLE_CAUSE_MAX; cause++) {
		if (!place->is_listed[cause])
			continue;
		if (trace_idle_describe(idle, place, (enum trace_idle_cause)cause, &gaps) < 0)
			return -ENOMEM;
		if (place->stream == MODEL_NONE) {
			report_trace_cell(table, report, view, place->device);
			table_cell(table, "all streams");
		} else {
			report_trace_stream_cells(table, report, view, place->stream);
		}
		table_cell(table, titles[cause]);
		report_trace_part(table, place->by_cause_ns[cause], place->idle_ns);
		table_count(table, gaps.count);
		report_trace_figure(table, gaps.mean);
		report_trace_figure(table, gaps.deviation);
		report_trace_figure(table, gaps.least);
		report_trace_figure(table, gaps.median);
		report_trace_figure(table, gaps.most);
	}
	return 0;
}

static int add_details(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct trace_idle *idle)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < idle->places.count; i++)
		r = add_causes(table, report, view, idle, &idle->places.items[i]);
	return r;
}

static int print_tables(const struct trace_report *report, struct table *table,
	int (*add)(struct table *table, const struct trace_report *report,
		const struct trace_view *view, const struct trace_idle *idle))
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < report->count; i++) {
		const struct trace_idle *idle = trace_results_idle(report->results, i);

		r = idle ? add(table, report, &report->views[i], idle) : -ENOMEM;
	}
	return r ?: table_print(table, &report->page.terminal, report->page.out);
}

static int print_details(const struct trace_report *report)
{
	static const struct table_column columns[] = {
		{.title = "GPU"},
		{.title = "Stream"},
		{.title = "Cause"},
		{.title = "Idle", .right = true},
		{.title = "Gaps", .right = true},
		{.title = "Mean", .right = true},
		{.title = "Std", .right = true},
		{.title = "Min", .right = true},
		{.title = "Median", .right = true},
		{.title = "Max", .right = true},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};

	return print_tables(report, &table, add_details);
}

static void add_legend(const struct trace_report *report)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (int cause = 0; cause < TRACE_IDLE_CAUSE_MAX; cause++)
		strbuf_addf(&text, "%s%s: %s", cause ? "; " : "", titles[cause],
			trace_idle_cause_meaning((enum trace_idle_cause)cause));
	strbuf_add_char(&text, '.');
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
}

static int print_idle(const struct trace_report *report)
{
	static const struct table_column columns[] = {
		{.title = "GPU"},
		{.title = "Idle", .right = true},
		{.title = "Host wait", .right = true},
		{.title = "Blocking call", .right = true},
		{.title = "Launch", .right = true},
		{.title = "Kernel wait", .right = true},
		{.title = "Other", .right = true},
		{.title = "Unknown", .right = true},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};

	if (!report_trace_has_works(report))
		return 0;
	report_heading(&report->page, "Idle time breakdown");
	if (report->alone || report->views->options.hta_compatible)
		return print_details(report);
	add_legend(report);
	return print_tables(report, &table, add_devices);
}

static int write_idle(const struct trace_report *report, struct json_writer *json)
{
	return report_trace_write(report, json, trace_json_idle);
}

const struct report_section idle_section = {
	.value.key = "idle",
	.by = "idle",
	.summary = "why GPUs and their streams were idle",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_idle,
	.write_trace = write_idle,
};
