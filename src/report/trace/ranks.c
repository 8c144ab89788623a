/* SPDX-License-Identifier: Apache-2.0 */
/* Section: ranks that the others wait for. */
#include <errno.h>
#include <inttypes.h>

#include "analyses/program/trace_stragglers.h"
#include "report/trace/path_json.h"
#include "report/trace/trace.h"

static int find_stragglers(const struct trace_report *report, struct trace_stragglers *stragglers)
{
	return trace_stragglers_init(
		stragglers, report->views, report->count, &(struct trace_straggler_options){0});
}

static void print_collective(
	const struct trace_report *report, const struct trace_stragglers *stragglers)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text,
		"The rank that begins a collective last makes the others wait. Looked at is the "
		"last %s of each step on stream %" PRId64 ", whose duration differs most between "
		"ranks.",
		stragglers->name, stragglers->stream);
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
}

static int print_ranks(const struct trace_report *report, const struct trace_stragglers *stragglers)
{
	static const struct table_column columns[] = {
		{.title = "Rank", .right = true},
		{.title = "Late in", .right = true},
		{.title = "Of steps", .right = true},
		{.title = "Begins after the first", .right = true},
		{.title = "Takes", .right = true},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	size_t count = stragglers->ranks.count;
	size_t shown = report->limit ? MIN(report->limit, count) : count;
	int r;

	for (size_t i = 0; i < shown; i++) {
		const struct trace_straggler_rank *rank = &stragglers->ranks.items[i];

		table_cellf(&table, "%" PRIu32, rank->rank);
		table_count(&table, rank->late_steps);
		table_count(&table, rank->steps);
		report_trace_time(&table, rank->lateness_ns);
		report_trace_time(&table, rank->duration_ns);
	}
	r = table_print(&table, &report->page.terminal, report->page.out);
	report_trace_rest(report, count - shown, "ranks");
	return r;
}

static int print_stragglers(const struct trace_report *report)
{
	_cleanup_trace_stragglers_ struct trace_stragglers stragglers = {0};
	int r = find_stragglers(report, &stragglers);

	if (r < 0)
		return r;
	if (!stragglers.ranks.count) {
		if (report->alone)
			report_paragraph(&report->page,
				"There is nothing to tell stragglers by: that takes two ranks or "
				"more, profiler steps, and collectives that take 1 % of a step.",
				0);
		return 0;
	}
	report_heading(&report->page, "Stragglers");
	print_collective(report, &stragglers);
	return print_ranks(report, &stragglers);
}

static int write_stragglers(const struct trace_report *report, struct json_writer *json)
{
	_cleanup_trace_stragglers_ struct trace_stragglers stragglers = {0};
	int r = find_stragglers(report, &stragglers);

	if (r == 0 && stragglers.ranks.count)
		trace_json_stragglers(json, &stragglers);
	else
		json_null(json);
	return r;
}

const struct report_section stragglers_section = {
	.value.key = "stragglers",
	.by = "stragglers",
	.summary = "ranks that the others wait for",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_stragglers,
	.write_trace = write_stragglers,
};
