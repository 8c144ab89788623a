/* SPDX-License-Identifier: Apache-2.0 */
/* Section: the critical path of each step, what it was bound by, and what it led through. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/critical_path.h"
#include "report/trace/path_json.h"
#include "report/trace/trace.h"

static const char *const titles[TRACE_PATH_BOUND_MAX] = {
	[TRACE_PATH_CPU] = "CPU",
	[TRACE_PATH_DATA_LOADING] = "Loading",
	[TRACE_PATH_GPU_COMPUTE] = "Compute",
	[TRACE_PATH_GPU_COMMUNICATION] = "Comm.",
	[TRACE_PATH_GPU_MEMORY] = "Copies",
	[TRACE_PATH_KERNEL_OVERHEAD] = "Gaps",
	[TRACE_PATH_LAUNCH_OVERHEAD] = "Launch",
	[TRACE_PATH_EARLIER] = "Earlier",
};

static int find_paths(const struct trace_report *report, const struct trace_view *view,
	struct critical_paths *paths)
{
	bool has_instance = report->choice.instance != UINT64_MAX;
	struct critical_path_options options = {
		.annotation = report->choice.annotation,
		.first = has_instance ? (uint32_t)report->choice.instance : 1,
		.last = has_instance ? (uint32_t)report->choice.instance : 0,
	};
	int r;

	if (view->options.hta_compatible && !has_instance)
		options.first = 0;
	r = critical_paths_init(paths, view, &options);
	return r == -ENOENT ? 0 : r;
}

/* Names of paths of all windows and ranks together. */
struct total {
	uint32_t text; /* in totals.texts */
	enum trace_path_bound bound;
	int64_t time_ns;
	uint64_t steps;
};

struct totals {
	struct intern texts;
	struct map_u64 places;
	ARRAY_OF(struct total) items;
	int64_t time_ns;
};

static void totals_done(struct totals *totals)
{
	intern_done(&totals->texts);
	map_u64_done(&totals->places);
	array_done(&totals->items);
}

static int add_name(
	struct totals *totals, const struct trace *trace, const struct critical_path_name *name)
{
	const struct intern_entry *entry = &trace->strings.entries.items[name->name];
	uint64_t place;
	uint32_t text;
	int r = intern_add(&totals->texts, entry->bytes, entry->length, &text);

	if (r < 0)
		return r;
	r = 0;
	if (!map_u64_get(&totals->places, (uint64_t)text << 8 | name->bound, &place)) {
		place = totals->items.count;
		r = map_u64_set(&totals->places, (uint64_t)text << 8 | name->bound, place);
		r = r
			    ?: array_append(&totals->items,
				       (struct total){.text = text, .bound = name->bound});
	}
	if (r == 0) {
		totals->items.items[place].time_ns += name->time_ns;
		totals->items.items[place].steps += name->steps;
		totals->time_ns += name->time_ns;
	}
	return r;
}

static int add_names(
	struct totals *totals, const struct trace *trace, const struct critical_path *path)
{
	int r = 0;

	array_foreach (&path->names, name)
		r = r ?: add_name(totals, trace, name);
	return r;
}

static int compare_totals(const void *left, const void *right)
{
	const struct total *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->text != b->text)
		return a->text < b->text ? -1 : 1;
	return (int)a->bound - (int)b->bound;
}

static void add_window(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct critical_path *path)
{
	if (report->count > 1)
		table_cellf(table, "%" PRIu32, view->rank);
	table_cell(table, path->name ? trace_text(view->trace, path->name) : "[whole trace]");
	report_trace_time(table, path->last_ns - path->start_ns);
	report_trace_time(table, path->total_ns);
	for (int bound = 0; bound < TRACE_PATH_ORDER; bound++) {
		if (path->by_bound[bound])
			table_cellf(table, "%.1f %%",
				100.0 * (double)path->by_bound[bound] / (double)path->total_ns);
		else
			table_cell(table, "");
	}
}

static int print_totals(const struct trace_report *report, struct totals *totals)
{
	static const struct table_column columns[] = {
		{.title = "On the path", .right = true},
		{.title = "", .right = true},
		{.title = "Parts", .right = true},
		{.title = "As"},
		{.title = "Name", .shrinks_to = 16},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	size_t count = totals->items.count;
	size_t shown = report->limit ? MIN(report->limit, count) : count;
	int r;

	if (count)
		qsort(totals->items.items, count, sizeof(*totals->items.items), compare_totals);
	for (size_t i = 0; i < shown; i++) {
		const struct total *total = &totals->items.items[i];

		report_trace_time(&table, total->time_ns);
		report_trace_share(&table, total->time_ns, totals->time_ns);
		table_count(&table, total->steps);
		table_cell(&table, titles[total->bound]);
		table_cell(&table, intern_get(&totals->texts, total->text));
	}
	strbuf_add_char(report->page.out, '\n');
	r = table_print(&table, &report->page.terminal, report->page.out);
	report_trace_rest(report, count - shown, "names");
	return r;
}

/* What the paths rest on, where it is not what the trace tells. */
static void print_notes(const struct trace_report *report, const struct critical_paths *paths)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!paths->sync_rows && !report->views->options.hta_compatible)
		strbuf_addf(&text,
			"The trace does not tell what calls and streams waited for (profile with "
			"enable_cuda_sync_events); waits worked out from calls that end with "
			"work: %" PRIu64 ". ",
			paths->inferred_waits);
	if (paths->unexplained_gaps)
		strbuf_addf(&text,
			"%" PRIu64 " times work began more than 1.5 ms after all that it is known "
			"to wait for: %.3f ms in all are on no path. ",
			paths->unexplained_gaps, (double)paths->unexplained_ns / NS_PER_MS);
	if (paths->clipped_rows)
		strbuf_addf(&text,
			"%" PRIu64 " rows end after the one they lie in: they were cut there. ",
			paths->clipped_rows);
	if (paths->backward_edges)
		strbuf_addf(&text,
			"%" PRIu64 " dependencies point back in time: they were left out. ",
			paths->backward_edges);
	if (text.length)
		report_paragraph(&report->page, strbuf_cstr(&text), 0);
}

static void add_notes(struct critical_paths *sum, const struct critical_paths *paths)
{
	sum->sync_rows += paths->sync_rows;
	sum->inferred_waits += paths->inferred_waits;
	sum->clipped_rows += paths->clipped_rows;
	sum->backward_edges += paths->backward_edges;
	sum->unexplained_gaps += paths->unexplained_gaps;
	sum->unexplained_ns += paths->unexplained_ns;
}

static int add_view(struct table *table, const struct trace_report *report,
	const struct trace_view *view, struct totals *totals, struct critical_paths *notes)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	int r = find_paths(report, view, &paths);

	array_foreach (&paths.windows, path) {
		if (path->steps.count)
			add_window(table, report, view, path);
		r = r ?: add_names(totals, view->trace, path);
	}
	add_notes(notes, &paths);
	return r;
}

static int print_path(const struct trace_report *report)
{
	static const struct table_column columns[] = {
		{.title = "Rank", .right = true},
		{.title = "Window", .shrinks_to = 14},
		{.title = "Until", .right = true},
		{.title = "Path", .right = true},
		{.title = "CPU", .right = true},
		{.title = "Loading", .right = true},
		{.title = "Compute", .right = true},
		{.title = "Comm.", .right = true},
		{.title = "Copies", .right = true},
		{.title = "Gaps", .right = true},
		{.title = "Launch", .right = true},
		{.title = "Earlier", .right = true},
	};
	size_t skipped = report->count > 1 ? 0 : 1;
	_cleanup_table_ struct table table = {
		.columns = columns + skipped, .column_count = ARRAY_SIZE(columns) - skipped};
	_cleanup_(totals_done) struct totals totals = {0};
	struct critical_paths notes = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < report->count; i++)
		r = add_view(&table, report, &report->views[i], &totals, &notes);
	if (r < 0)
		return r;
	if (!table.cells.count) {
		report_paragraph(&report->page,
			"There is no critical path: no annotation of that name and number, or "
			"nothing ran in it.",
			0);
		return 0;
	}
	report_heading(&report->page, "Critical path");
	report_paragraph(&report->page,
		"The chain of operators, launches, GPU work and waits that decided how long each "
		"window took; shares are of the path.",
		2);
	r = table_print(&table, &report->page.terminal, report->page.out);
	r = r ?: print_totals(report, &totals);
	print_notes(report, &notes);
	return r;
}

static int write_path(const struct trace_report *report, struct json_writer *json)
{
	int r = 0;

	json_begin_array(json);
	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_critical_paths_ struct critical_paths paths = {0};

		r = find_paths(report, &report->views[i], &paths);
		if (r == 0)
			trace_json_critical_paths(
				json, &report->views[i], &paths, report->limit, report->alone);
	}
	json_end_array(json);
	return r;
}

const struct report_section path_section = {
	.value.key = "critical_path",
	.by = "critical-path",
	.summary = "what decided how long each step took",
	.needs = REPORT_NEEDS_TRACE,
	.is_extra = true,
	.print_trace = print_path,
	.write_trace = write_path,
};
