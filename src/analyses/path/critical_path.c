/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/path/critical_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path.h"

const char *trace_path_bound_name(enum trace_path_bound bound)
{
	static const char *const names[TRACE_PATH_BOUND_MAX] = {
		[TRACE_PATH_CPU] = "cpu_bound",
		[TRACE_PATH_DATA_LOADING] = "data_loading",
		[TRACE_PATH_GPU_COMPUTE] = "gpu_compute_bound",
		[TRACE_PATH_GPU_COMMUNICATION] = "gpu_communication_bound",
		[TRACE_PATH_GPU_MEMORY] = "gpu_memory_bound",
		[TRACE_PATH_KERNEL_OVERHEAD] = "gpu_kernel_kernel_overhead",
		[TRACE_PATH_LAUNCH_OVERHEAD] = "gpu_kernel_launch_overhead",
		[TRACE_PATH_EARLIER] = "earlier_gpu_work",
		[TRACE_PATH_ORDER] = "",
	};

	return names[bound];
}

const char *trace_path_kind_name(enum trace_path_kind kind)
{
	static const char *const names[TRACE_PATH_KIND_MAX] = {
		[TRACE_PATH_OPERATOR] = "critical_path_operator",
		[TRACE_PATH_DEPENDENCY] = "critical_path_dependency",
		[TRACE_PATH_LAUNCH_DELAY] = "critical_path_kernel_launch_delay",
		[TRACE_PATH_KERNEL_DELAY] = "critical_path_kernel_kernel_delay",
		[TRACE_PATH_EARLIER_DELAY] = "critical_path_earlier_work_delay",
		[TRACE_PATH_SYNC] = "critical_path_sync_dependency",
	};

	return names[kind];
}

/* ---- windows ---- */

struct bounds {
	uint32_t name;
	int64_t start_ns, end_ns; /* what begins at the end does not belong to it */
};

struct windows {
	ARRAY_OF(struct bounds) items;
};

static bool is_instance(
	const struct trace_view *view, const struct trace_event *event, const char *annotation)
{
	return event->category == TRACE_USER_ANNOTATION &&
	       event->duration_ns != TRACE_NO_DURATION && trace_view_has(view, event) &&
	       strncmp(trace_text(view->trace, event->name), annotation, strlen(annotation)) == 0;
}

static int compare_bounds(const void *left, const void *right)
{
	const struct bounds *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns > b->end_ns ? -1 : a->end_ns < b->end_ns;
}

/* Annotations may lie in one another, or overlap: each row belongs to one window. */
static void keep_apart(struct windows *windows)
{
	int64_t last_ns = INT64_MIN;
	size_t kept = 0;

	array_foreach (&windows->items, bounds) {
		if (kept && bounds->end_ns <= last_ns)
			continue;
		if (kept)
			bounds->start_ns = MAX(bounds->start_ns, last_ns);
		last_ns = bounds->end_ns;
		windows->items.items[kept++] = *bounds;
	}
	windows->items.count = kept;
}

static int find_instances(
	const struct trace_view *view, const char *annotation, struct windows *windows)
{
	int r = 0;

	array_foreach (&view->trace->events, event) {
		if (r == 0 && is_instance(view, event, annotation))
			r = array_append(&windows->items,
				(struct bounds){event->name, trace_view_start_ns(view, event),
					trace_view_end_ns(view, event)});
	}
	if (windows->items.count)
		qsort(windows->items.items, windows->items.count, sizeof(*windows->items.items),
			compare_bounds);
	keep_apart(windows);
	return r;
}

/* Makes one window of instances first … last. */
static int join_instances(struct windows *windows, uint32_t first, uint32_t last)
{
	struct bounds *bounds;

	if (first >= windows->items.count)
		return -ENOENT;
	bounds = &windows->items.items[first];
	for (size_t i = first; i <= last && i < windows->items.count; i++) {
		bounds->start_ns = MIN(bounds->start_ns, windows->items.items[i].start_ns);
		bounds->end_ns = MAX(bounds->end_ns, windows->items.items[i].end_ns);
	}
	windows->items.items[0] = *bounds;
	windows->items.count = 1;
	return 0;
}

static int add_whole(const struct trace_path_source *source, struct windows *windows)
{
	struct bounds bounds = {.start_ns = INT64_MAX, .end_ns = INT64_MIN};

	if (!source->rows.count && !source->launched.count)
		return 0;
	array_foreach (&source->launched, launched) {
		bounds.start_ns = MIN(bounds.start_ns, launched->time_ns);
		bounds.end_ns = MAX(bounds.end_ns, launched->time_ns);
	}
	array_foreach (&source->rows, row) {
		bounds.start_ns = MIN(bounds.start_ns, row->start_ns);
		bounds.end_ns = MAX(bounds.end_ns, row->end_ns);
	}
	/* What begins at the end of a window belongs to the next one: there is none. */
	bounds.end_ns++;
	return array_append(&windows->items, bounds);
}

static int find_windows(const struct trace_path_source *source,
	const struct critical_path_options *options, struct windows *windows)
{
	const char *annotation = options->annotation ?: "ProfilerStep";
	int r;

	if (!annotation[0])
		return add_whole(source, windows);
	r = find_instances(source->view, annotation, windows);
	if (r == 0 && !windows->items.count)
		return options->annotation ? -ENOENT : add_whole(source, windows);
	if (r == 0 && options->first <= options->last)
		return join_instances(windows, options->first, options->last);
	return r;
}

/* ---- what belongs to a window ---- */

/* The first item that is not before this time, which items begin with and are sorted by. */
static size_t first_from(const void *items, size_t count, size_t size, int64_t time_ns)
{
	size_t first = 0, last = count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		const int64_t *found_ns = (const void *)((const char *)items + middle * size);

		if (*found_ns < time_ns)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

static size_t first_row_from(const struct trace_path_source *source, int64_t time_ns)
{
	return first_from(
		source->rows.items, source->rows.count, sizeof(*source->rows.items), time_ns);
}

static int compare_works(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

static int select_works(struct trace_path_window *window, int64_t start_ns, int64_t end_ns)
{
	const struct trace_path_source *source = window->source;
	int r = 0;

	array_clear(&window->works);
	for (size_t i = first_from(source->launched.items, source->launched.count,
		     sizeof(*source->launched.items), start_ns);
		r == 0 && i < source->launched.count && source->launched.items[i].time_ns < end_ns;
		i++)
		r = array_append(&window->works, source->launched.items[i].work);
	if (window->works.count)
		qsort(window->works.items, window->works.count, sizeof(*window->works.items),
			compare_works);
	return r;
}

static void select_rows(struct trace_path_window *window, int64_t start_ns, int64_t end_ns)
{
	size_t first = first_row_from(window->source, start_ns);

	window->rows = window->source->rows.items + first;
	window->row_count = first_row_from(window->source, end_ns) - first;
}

/* ---- nodes ---- */

static int add_nodes(struct trace_path_window *window)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < window->row_count; i++) {
		const struct trace_path_row *row = &window->rows[i];

		r = trace_path_graph_add_row(window->graph, row->event, row->start_ns, row->end_ns);
	}
	for (size_t i = 0; r == 0 && i < window->works.count; i++) {
		const struct trace_view_work *work =
			&window->source->view->works.items[window->works.items[i]];

		r = trace_path_graph_add_row(
			window->graph, work->row, work->start_ns, work->end_ns);
	}
	trace_path_graph_sort(window->graph);
	return r;
}

static void forget_nodes(struct trace_path_window *window)
{
	array_foreach (&window->graph->nodes, node)
		window->source->blocked[node->event] = 0;
	trace_path_graph_clear(window->graph);
}

/* ---- the path ---- */

static enum trace_path_bound bound_of_row(const void *context, uint32_t row)
{
	const struct trace_path_source *source = context;
	const struct trace_event *event = &source->trace->events.items[row];

	if (!trace_is_work(event))
		return source->names[event->name] & TRACE_PATH_LOADING ? TRACE_PATH_DATA_LOADING
								       : TRACE_PATH_CPU;
	switch (trace_view_kind(source->view, event)) {
	case TRACE_COMMUNICATION:
		return TRACE_PATH_GPU_COMMUNICATION;
	case TRACE_MEMORY:
		return TRACE_PATH_GPU_MEMORY;
	default:
		return TRACE_PATH_GPU_COMPUTE;
	}
}

static enum trace_path_bound bound_of(
	const struct trace_path_edge *edge, trace_path_bound_of_row *bound, const void *context)
{
	switch (edge->kind) {
	case TRACE_PATH_KERNEL_DELAY:
		return TRACE_PATH_KERNEL_OVERHEAD;
	case TRACE_PATH_LAUNCH_DELAY:
		return TRACE_PATH_LAUNCH_OVERHEAD;
	case TRACE_PATH_EARLIER_DELAY:
		return TRACE_PATH_EARLIER;
	case TRACE_PATH_OPERATOR:
		return edge->event == MODEL_NONE ? TRACE_PATH_CPU : bound(context, edge->event);
	case TRACE_PATH_SYNC: /* what a call did after its wait was over */
		return edge->event == MODEL_NONE ? TRACE_PATH_ORDER : bound(context, edge->event);
	default:
		return TRACE_PATH_ORDER;
	}
}

static int add_steps(struct critical_path *result, const struct trace_path_graph *graph,
	const struct trace_path_longest *longest, trace_path_bound_of_row *bound,
	const void *context)
{
	const struct trace_path_node *nodes = graph->nodes.items;
	int r = 0;

	array_foreach (&longest->edges, index) {
		const struct trace_path_edge *edge = &graph->edges.items[*index];
		struct critical_path_step step = {
			.from = nodes[edge->from].event,
			.to = nodes[edge->to].event,
			.from_is_start = nodes[edge->from].is_start,
			.to_is_start = nodes[edge->to].is_start,
			.start_ns = nodes[edge->from].time_ns,
			.duration_ns = edge->duration_ns,
			.event = edge->event,
			.kind = edge->kind,
			.bound = bound_of(edge, bound, context),
		};

		r = r ?: array_append(&result->steps, step);
		result->total_ns += step.duration_ns;
		result->by_bound[step.bound] += step.duration_ns;
		result->last_ns = nodes[edge->to].time_ns;
	}
	return r;
}

static int compare_names(const void *left, const void *right)
{
	const struct critical_path_name *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return a->bound < b->bound ? -1 : a->bound > b->bound;
}

static int add_names(const struct trace *trace, struct critical_path *result)
{
	struct map_u64 places = {0};
	int r = 0;

	array_foreach (&result->steps, step) {
		uint32_t name =
			step->event == MODEL_NONE ? 0 : trace->events.items[step->event].name;
		uint64_t key = (uint64_t)name << 8 | step->bound, place;

		if (r < 0 || step->bound == TRACE_PATH_ORDER)
			continue;
		if (!map_u64_get(&places, key, &place)) {
			place = result->names.count;
			r = map_u64_set(&places, key, place);
			if (r == 0)
				r = array_append(
					&result->names, (struct critical_path_name){.name = name,
								.bound = step->bound});
		}
		if (r == 0) {
			result->names.items[place].time_ns += step->duration_ns;
			result->names.items[place].steps++;
		}
	}
	map_u64_done(&places);
	if (result->names.count)
		qsort(result->names.items, result->names.count, sizeof(*result->names.items),
			compare_names);
	return r;
}

int critical_path_finish(struct critical_path *path, const struct trace *trace,
	const struct trace_path_graph *graph, trace_path_bound_of_row *bound, const void *context)
{
	struct trace_path_longest longest = {0};
	int r = trace_path_graph_longest(graph, &longest);

	path->last_ns = path->start_ns;
	path->nodes = longest.nodes;
	path->edges = graph->edges.count;
	path->cyclic_nodes = longest.cyclic_nodes;
	r = r ?: add_steps(path, graph, &longest, bound, context);
	r = r ?: add_names(trace, path);
	trace_path_longest_done(&longest);
	return r;
}

static int find_path(
	struct trace_path_window *window, const struct bounds *bounds, struct critical_path *result)
{
	const struct trace_path_source *source = window->source;
	int r;

	*result = (struct critical_path){
		.name = bounds->name, .start_ns = bounds->start_ns, .end_ns = bounds->end_ns};
	select_rows(window, bounds->start_ns, bounds->end_ns);
	r = select_works(window, bounds->start_ns, bounds->end_ns);
	r = r ?: add_nodes(window);
	r = r ?: trace_path_add_waits(window);
	r = r ?: trace_path_add_threads(window);
	r = r ?: trace_path_add_works(window);
	r = r ?: critical_path_finish(result, source->trace, window->graph, bound_of_row, source);
	forget_nodes(window);
	return r;
}

static int find_paths(struct trace_path_source *source, const struct windows *windows,
	struct critical_paths *paths)
{
	struct trace_path_graph graph;
	struct trace_path_window window = {.source = source, .graph = &graph};
	int r = trace_path_graph_init(&graph, source->trace->events.count);

	array_foreach (&windows->items, bounds) {
		struct critical_path path = {0};

		r = r ?: find_path(&window, bounds, &path);
		if (r < 0 || array_append(&paths->windows, path) < 0) {
			critical_path_done(&path);
			r = r ?: -ENOMEM;
			break;
		}
	}
	array_done(&window.works);
	trace_path_graph_done(&graph);
	return r;
}

int critical_paths_init(struct critical_paths *paths, const struct trace_view *view,
	const struct critical_path_options *options)
{
	_cleanup_(trace_path_source_done) struct trace_path_source source = {0};
	struct windows windows = {0};
	int r;

	*paths = (struct critical_paths){.infers_waits = true};
	r = trace_path_source_init(&source, view, paths);
	r = r ?: find_windows(&source, options, &windows);
	r = r ?: find_paths(&source, &windows, paths);
	array_done(&windows.items);
	if (r < 0)
		critical_paths_done(paths);
	return r;
}

void critical_path_done(struct critical_path *path)
{
	array_done(&path->steps);
	array_done(&path->names);
}

void critical_paths_done(struct critical_paths *paths)
{
	array_foreach (&paths->windows, path)
		critical_path_done(path);
	array_done(&paths->windows);
}
