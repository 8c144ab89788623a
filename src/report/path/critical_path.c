/* SPDX-License-Identifier: Apache-2.0 */
/* Section: the critical path of each step, what it was bound by, and what it led through. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/critical_path.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

/* ---- columns ---- */

static const struct report_column bound_columns[] = {
	{.key = "bound_by", .kind = REPORT_TEXT},
	{.key = "time_ns", .kind = REPORT_NS},
};
static const struct report_shape bound_shape = REPORT_SHAPE(bound_columns);

static const struct report_column name_columns[] = {
	{.key = "name", .kind = REPORT_TEXT},
	{.key = "bound_by", .kind = REPORT_TEXT},
	{.key = "time_ns", .kind = REPORT_NS},
	{.key = "edges", .kind = REPORT_COUNT},
};
static const struct report_shape name_shape = REPORT_SHAPE(name_columns);

static const struct report_column edge_columns[] = {
	{.key = "type", .kind = REPORT_TEXT},
	{.key = "bound_by", .kind = REPORT_TEXT},
	{.key = "start_ns", .kind = REPORT_NS},
	{.key = "duration_ns", .kind = REPORT_NS},
	{.key = "from_event", .kind = REPORT_INTEGER, .help = "indices in the file's traceEvents"},
	{.key = "to_event", .kind = REPORT_INTEGER},
	{.key = "event",
		.kind = REPORT_INTEGER,
		.help = "the event that the time belongs to; null: none"},
	{.key = "name", .kind = REPORT_TEXT},
};
static const struct report_shape edge_shape = REPORT_SHAPE(edge_columns);

/* In the order of enum trace_path_bound. */
static const struct report_column window_columns[] = {
	{.title = "Rank",
		.kind = REPORT_INTEGER,
		.hide = REPORT_HIDE_SAME,
		.join = REPORT_JOIN_RANK},
	{.key = "name",
		.title = "Window",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.unknown = "[whole trace]",
		.is_name = true,
		.shrinks_to = 14},
	{.key = "start_ns", .kind = REPORT_NS},
	{.key = "window_ns", .kind = REPORT_NS},
	{.key = "until_ns",
		.title = "Until",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.help = "when the path ends, since the begin"},
	{.key = "path_ns",
		.title = "Path",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.is_lead = true},
	REPORT_RANK_SPREAD(0),
	{.title = "CPU",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.hide = REPORT_HIDE_EMPTY,
		.join = REPORT_JOIN_MEAN},
	{.title = "Loading",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.hide = REPORT_HIDE_EMPTY,
		.join = REPORT_JOIN_MEAN},
	{.title = "Compute",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.hide = REPORT_HIDE_EMPTY,
		.join = REPORT_JOIN_MEAN},
	{.title = "Comm.",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.hide = REPORT_HIDE_EMPTY,
		.join = REPORT_JOIN_MEAN},
	{.title = "Copies",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.hide = REPORT_HIDE_EMPTY,
		.join = REPORT_JOIN_MEAN},
	{.title = "Gaps",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.hide = REPORT_HIDE_EMPTY,
		.join = REPORT_JOIN_MEAN},
	{.title = "Launch",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.hide = REPORT_HIDE_EMPTY,
		.join = REPORT_JOIN_MEAN},
	{.title = "Earlier",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.hide = REPORT_HIDE_EMPTY,
		.join = REPORT_JOIN_MEAN},
	{.key = "by_bound_ns", .kind = REPORT_MAP, .shape = &bound_shape},
	{.key = "nodes", .kind = REPORT_COUNT},
	{.key = "edges", .kind = REPORT_COUNT},
	{.key = "cyclic_nodes", .kind = REPORT_COUNT, .help = "left out"},
	{.key = "path_edges", .kind = REPORT_COUNT},
	{.key = "rows", .total = "rows_total", .kind = REPORT_ROWS, .shape = &name_shape},
	{.key = "edges_of_path",
		.kind = REPORT_ROWS,
		.shape = &edge_shape,
		.help = "with --by critical-path, otherwise null"},
};
static const struct report_shape window_shape = REPORT_SHAPE(window_columns);

static const struct report_column columns[] = {
	{.key = "rank", .kind = REPORT_INTEGER},
	{.key = "sync_events", .kind = REPORT_COUNT, .help = "rows of cuda_sync"},
	{.key = "inferred_waits", .kind = REPORT_COUNT},
	{.key = "clipped_events", .kind = REPORT_COUNT},
	{.key = "backward_dependencies", .kind = REPORT_COUNT},
	{.key = "unexplained_gaps", .kind = REPORT_COUNT},
	{.key = "unexplained_ns", .kind = REPORT_NS},
	{.key = "windows", .kind = REPORT_ROWS, .shape = &window_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static const struct report_column total_columns[] = {
	{.title = "On the path", .kind = REPORT_NS},
	{.title = "", .kind = REPORT_SHARE},
	{.title = "Parts", .kind = REPORT_COUNT},
	{.title = "As", .kind = REPORT_TEXT},
	{.title = "Name", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 16},
};
static const struct report_shape total_shape = REPORT_SHAPE(total_columns);

/* The ranks in JSON, and in the terminal what it shows of all of them. */
static const struct report_column all_columns[] = {
	{.key = "critical_path", .kind = REPORT_ROWS, .shape = &shape, .help = "by rank"},
	{.kind = REPORT_ROWS, .shape = &window_shape},
	{.kind = REPORT_ROWS, .shape = &total_shape},
};
static const struct report_shape all_shape = REPORT_SHAPE(all_columns);

static const char *const bound_titles[TRACE_PATH_BOUND_MAX] = {
	[TRACE_PATH_CPU] = "CPU",
	[TRACE_PATH_DATA_LOADING] = "Loading",
	[TRACE_PATH_GPU_COMPUTE] = "Compute",
	[TRACE_PATH_GPU_COMMUNICATION] = "Comm.",
	[TRACE_PATH_GPU_MEMORY] = "Copies",
	[TRACE_PATH_KERNEL_OVERHEAD] = "Gaps",
	[TRACE_PATH_LAUNCH_OVERHEAD] = "Launch",
	[TRACE_PATH_EARLIER] = "Earlier",
};

/* ---- what all windows and ranks have on their paths ---- */

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
		if (r == 0)
			r = array_append(
				&totals->items, (struct total){.text = text, .bound = name->bound});
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

	for (size_t i = 0; r == 0 && i < path->names.count; i++)
		r = add_name(totals, trace, &path->names.items[i]);
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

static void add_totals(struct result *result, struct totals *totals)
{
	if (totals->items.count)
		qsort(totals->items.items, totals->items.count, sizeof(*totals->items.items),
			compare_totals);
	array_foreach (&totals->items, total) {
		result_i64(result, total->time_ns);
		result_share(result, (double)total->time_ns, (double)totals->time_ns);
		result_u64(result, total->steps);
		result_text(result, bound_titles[total->bound]);
		result_text(result, intern_get(&totals->texts, total->text));
	}
}

/* ---- windows ---- */

static int find_paths(const struct report_input *input, const struct trace_view *view,
	struct critical_paths *paths)
{
	bool has_instance = input->trace->choice.instance != UINT64_MAX;
	struct critical_path_options options = {
		.annotation = input->trace->choice.annotation,
		.first = has_instance ? (uint32_t)input->trace->choice.instance : 1,
		.last = has_instance ? (uint32_t)input->trace->choice.instance : 0,
	};
	int r;

	r = input->trace->definitions->paths(paths, view, &options);
	return r == -ENOENT ? 0 : r;
}

/* Rows are named by their place in the file's traceEvents. */
static void add_event(struct result *result, const struct trace *trace, uint32_t row)
{
	result_known(result, row != MODEL_NONE,
		row == MODEL_NONE ? 0 : trace->events.items[row].file_index);
}

static void add_edges(
	struct result *result, const struct trace *trace, const struct critical_path *path)
{
	result_open(result);
	array_foreach (&path->steps, step) {
		result_text(result, trace_path_kind_name(step->kind));
		result_text(result, trace_path_bound_name(step->bound));
		result_i64(result, step->start_ns);
		result_i64(result, step->duration_ns);
		add_event(result, trace, step->from);
		add_event(result, trace, step->to);
		add_event(result, trace, step->event);
		result_text(
			result, step->event == MODEL_NONE
					? NULL
					: trace_text(trace, trace->events.items[step->event].name));
	}
	result_close(result);
}

static void add_path_names(struct result *result, const struct report_input *input,
	const struct trace *trace, const struct critical_path *path)
{
	size_t wanted;

	result_open(result);
	wanted = report_rows_wanted(result, input, path->names.count);
	for (size_t i = 0; i < wanted; i++) {
		const struct critical_path_name *name = &path->names.items[i];

		result_text(result, trace_text(trace, name->name));
		result_text(result, trace_path_bound_name(name->bound));
		result_i64(result, name->time_ns);
		result_u64(result, name->steps);
	}
	result_close(result);
}

/* With several ranks a share of 0 counts in their mean. */
static void add_bounds(
	struct result *result, const struct report_input *input, const struct critical_path *path)
{
	for (int bound = 0; bound < TRACE_PATH_ORDER; bound++) {
		bool is_known = path->by_bound[bound] || input->trace->count > 1;

		result_share(result, (double)path->by_bound[bound],
			is_known ? (double)path->total_ns : 0);
	}
	result_open(result);
	for (int bound = 0; bound < TRACE_PATH_ORDER; bound++) {
		result_text(result, trace_path_bound_name((enum trace_path_bound)bound));
		result_i64(result, path->by_bound[bound]);
	}
	result_close(result);
}

static void add_window(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct critical_path *path)
{
	result_u64(result, view->rank);
	result_text(result, path->name ? trace_text(view->trace, path->name) : NULL);
	result_i64(result, path->start_ns);
	result_i64(result, path->end_ns - path->start_ns);
	result_i64(result, path->last_ns - path->start_ns);
	result_i64(result, path->total_ns);
	report_add_rank_spread(result);
	add_bounds(result, input, path);
	result_u64(result, path->nodes);
	result_u64(result, path->edges);
	result_u64(result, path->cyclic_nodes);
	result_u64(result, path->steps.count);
	if (input->is_json) {
		add_path_names(result, input, view->trace, path);
		add_edges(result, view->trace, path);
		return;
	}
	result_null(result);
	result_null(result);
}

static void add_rank(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct critical_paths *paths)
{
	result_u64(result, view->rank);
	result_u64(result, paths->sync_rows);
	result_u64(result, paths->inferred_waits);
	result_u64(result, paths->clipped_rows);
	result_u64(result, paths->backward_edges);
	result_u64(result, paths->unexplained_gaps);
	result_i64(result, paths->unexplained_ns);
	result_open(result);
	array_foreach (&paths->windows, path)
		add_window(result, input, view, path);
	result_close(result);
}

/* What the paths rest on, where it is not what the trace tells. */
static void show_notes(
	struct result *result, const struct report_input *input, const struct critical_paths *paths)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!paths->sync_rows && paths->infers_waits)
		strbuf_addf(&text,
			"The trace does not say what calls and streams waited for (profile with "
			"enable_cuda_sync_events); waits inferred from calls that end with work: "
			"%" PRIu64 ". ",
			paths->inferred_waits);
	if (paths->unexplained_gaps)
		strbuf_addf(&text,
			"%" PRIu64 " times work began more than 1.5 ms after everything that it is "
			"known to wait for: %.3f ms in all are on no path. ",
			paths->unexplained_gaps, (double)paths->unexplained_ns / NS_PER_MS);
	if (paths->clipped_rows)
		strbuf_addf(&text,
			"%" PRIu64
			" rows end after the row that encloses them: they were cut there. ",
			paths->clipped_rows);
	if (paths->backward_edges)
		strbuf_addf(&text,
			"%" PRIu64 " dependencies point back in time: they were left out. ",
			paths->backward_edges);
	if (text.length)
		result_sentence(result, 0, strbuf_cstr(&text));
}

static void add_notes(struct critical_paths *sum, const struct critical_paths *paths)
{
	sum->infers_waits |= paths->infers_waits;
	sum->sync_rows += paths->sync_rows;
	sum->inferred_waits += paths->inferred_waits;
	sum->clipped_rows += paths->clipped_rows;
	sum->backward_edges += paths->backward_edges;
	sum->unexplained_gaps += paths->unexplained_gaps;
	sum->unexplained_ns += paths->unexplained_ns;
}

static int add_ranks(struct result *result, const struct report_input *input)
{
	result_open(result);
	for (size_t i = 0; i < input->trace->count; i++) {
		const struct trace_view *view = &input->trace->views[i];
		_cleanup_critical_paths_ struct critical_paths paths = {0};
		int r = find_paths(input, view, &paths);

		if (r < 0)
			return r;
		add_rank(result, input, view, &paths);
	}
	result_close(result);
	return 0;
}

/* Of all ranks: windows whose path leads through something, names and notes. */
static int add_windows(struct result *result, const struct report_input *input,
	struct totals *totals, struct critical_paths *notes)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < input->trace->count; i++) {
		const struct trace_view *view = &input->trace->views[i];
		_cleanup_critical_paths_ struct critical_paths paths = {0};

		r = find_paths(input, view, &paths);
		for (size_t k = 0; r == 0 && k < paths.windows.count; k++) {
			const struct critical_path *path = &paths.windows.items[k];

			if (path->steps.count)
				add_window(result, input, view, path);
			r = add_names(totals, view->trace, path);
		}
		add_notes(notes, &paths);
	}
	return r;
}

static int show(struct result *result, const struct report_input *input, struct totals *totals)
{
	struct critical_paths notes = {0};
	uint32_t windows = result_open(result), names;
	int r = add_windows(result, input, totals, &notes);

	if (r < 0)
		return r;
	result_close(result);
	names = result_open(result);
	add_totals(result, totals);
	result_close(result);
	if (!result_count(result, windows))
		return report_nothing(result, input,
			"There is no critical path: there is no annotation of that name and "
			"number, or nothing ran in it.");
	result_heading(result, "Critical path");
	result_sentence(result, 2,
		"The chain of operators, launches, GPU work and waits that decided how long each "
		"window took; shares are of the path.");
	result_show(result, report_join_ranks(result, input, windows), &(struct result_show){0});
	result_lines(result, "\n");
	result_show(result, names,
		&(struct result_show){.limit = report_rows_shown(input, 20, 10), .noun = "names"});
	show_notes(result, input, &notes);
	return 0;
}

/* Paths are large: of one rank at a time. */
static int make(struct result *result, const struct report_input *input)
{
	_cleanup_(totals_done) struct totals totals = {0};
	int r;

	result_open(result);
	if (input->is_json) {
		r = add_ranks(result, input);
		result_null(result);
		result_null(result);
	} else {
		result_null(result);
		r = show(result, input, &totals);
	}
	if (r == 0)
		result_close(result);
	return r;
}

const struct report_section path_section = {
	.value = {.title = "critical path", .kind = REPORT_OBJECT, .shape = &all_shape},
	.by = "critical-path",
	.summary = "what decided how long each step took",
	.needs = REPORT_NEEDS_ROWS,
	.is_extra = true,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
