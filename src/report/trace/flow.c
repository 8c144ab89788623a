/* SPDX-License-Identifier: Apache-2.0 */
/* Sections: how launches reach devices: their queues, and what they cost. */
#include <errno.h>

#include "analyses/device/queue.h"
#include "report/trace/report_json.h"
#include "report/trace/trace.h"

static void add_queue(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct trace_queue_stream *stream)
{
	report_trace_stream_cells(table, report, view, stream->stream);
	table_count(table, stream->launches);
	if (view->options.hta_compatible) {
		const double values[] = {stream->points.mean, stream->points.deviation,
			stream->points.least, stream->points.quarter, stream->points.median,
			stream->points.three_quarters, stream->points.most};

		for (size_t i = 0; i < ARRAY_SIZE(values); i++)
			table_cellf(table, "%.4g", values[i]);
		return;
	}
	table_cellf(table, "%.2f", stream->mean);
	table_count(table, (uint64_t)MAX(stream->longest, (int64_t)0));
	report_trace_share(table, stream->empty_ns, stream->span_ns);
	report_trace_share(table, stream->full_ns, stream->span_ns);
}

static const struct table_column queue_columns[] = {
	{.title = "GPU"},
	{.title = "Stream"},
	{.title = "Launches", .right = true},
	{.title = "Mean length", .right = true},
	{.title = "Longest", .right = true},
	{.title = "Empty", .right = true},
	{.title = "Full", .right = true},
};

/* HTA describes the values at the moments of change. */
static const struct table_column hta_queue_columns[] = {
	{.title = "GPU"},
	{.title = "Stream"},
	{.title = "Launches", .right = true},
	{.title = "Mean", .right = true},
	{.title = "Std", .right = true},
	{.title = "Min", .right = true},
	{.title = "25%", .right = true},
	{.title = "50%", .right = true},
	{.title = "75%", .right = true},
	{.title = "Max", .right = true},
};

static int print_queue(const struct trace_report *report)
{
	bool hta = report->views->options.hta_compatible;
	_cleanup_table_ struct table table = {
		.columns = hta ? hta_queue_columns : queue_columns,
		.column_count = hta ? ARRAY_SIZE(hta_queue_columns) : ARRAY_SIZE(queue_columns),
	};
	int r = 0;

	if (!report_trace_has_works(report))
		return 0;
	report_heading(&report->page, "Queue length (launches that wait on a stream)");
	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_trace_queue_ struct trace_queue queue = {0};

		r = trace_queue_init(&queue, &report->views[i]);
		array_foreach (&queue.streams, stream)
			add_queue(&table, report, &report->views[i], stream);
	}
	return r ?: table_print(&table, &report->page.terminal, report->page.out);
}

static int write_queue(const struct trace_report *report, struct json_writer *json)
{
	return report_trace_write(report, json, trace_json_queue);
}

const struct report_section queue_section = {
	.value.key = "queue",
	.by = "queue",
	.summary = "how many launches wait on each stream",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_queue,
	.write_trace = write_queue,
};

/* ---- launches ---- */

static int add_call(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct trace_launches *launches, uint32_t index)
{
	const struct trace_launch_call *call = &launches->calls.items[index];
	struct trace_describe figures[TRACE_LAUNCH_FIGURE_MAX];
	int r = 0;

	for (int i = 0; r == 0 && i < TRACE_LAUNCH_FIGURE_MAX; i++)
		r = trace_launches_describe(
			launches, index, (enum trace_launch_figure)i, &figures[i]);
	if (r < 0)
		return r;
	if (report->count > 1)
		table_cellf(table, "%u", view->rank);
	table_count(table, call->launches);
	table_count(table, call->works);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		report_trace_figure(table, figures[i].median);
	table_cellf(table, "%.0f %%", 100.0 * (double)call->short_works / (double)call->launches);
	table_count(table, call->long_calls);
	table_count(table, call->long_delays);
	table_cell(table, trace_text(view->trace, call->name));
	return 0;
}

static const struct table_column launch_columns[] = {
	{.title = "Rank", .right = true}, /* where there are several */
	{.title = "Launches", .right = true},
	{.title = "Work", .right = true},
	{.title = "Call", .right = true},
	{.title = "GPU", .right = true},
	{.title = "Delay", .right = true},
	{.title = "If idle", .right = true},
	{.title = "Short", .right = true},
	{.title = ">50 \xc2\xb5s", .right = true},
	{.title = ">100 \xc2\xb5s", .right = true},
	{.title = "By", .shrinks_to = 20},
};

static int print_launches(const struct trace_report *report)
{
	size_t skipped = report->count > 1 ? 0 : 1;
	_cleanup_table_ struct table table = {
		.columns = launch_columns + skipped,
		.column_count = ARRAY_SIZE(launch_columns) - skipped,
	};
	int r = 0;

	if (!report_trace_has_works(report))
		return 0;
	report_heading(&report->page, "Launches");
	report_paragraph(&report->page,
		"Medians of: the call, its work on the GPU, the delay from the call's return to "
		"the work's start, and from the call's begin where the stream was idle. Short: "
		"launches whose work takes less than their call. >50 \xc2\xb5s: such calls; >100 "
		"\xc2\xb5s: such delays.",
		2);
	for (size_t i = 0; r == 0 && i < report->count; i++) {
		const struct trace_launches *launches = trace_results_launches(report->results, i);

		if (!launches)
			return -ENOMEM;
		for (uint32_t call = 0; r == 0 && call < launches->calls.count; call++)
			r = add_call(&table, report, &report->views[i], launches, call);
	}
	return r ?: table_print(&table, &report->page.terminal, report->page.out);
}

static int write_launches(const struct trace_report *report, struct json_writer *json)
{
	return report_trace_write(report, json, trace_json_launches);
}

const struct report_section launches_section = {
	.value.key = "launches",
	.by = "launches",
	.summary = "what launching costs, by call",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_launches,
	.write_trace = write_launches,
};
