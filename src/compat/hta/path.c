/* SPDX-License-Identifier: Apache-2.0 */
/* HTA's critical path: the window, its rows, and the edges of threads. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compat/hta/path_state.h"

/* ---- what names say ---- */

static bool is_among(const char *name, const char *const *names)
{
	for (; *names; names++) {
		if (strcmp(name, *names) == 0)
			return true;
	}
	return false;
}

static uint8_t flags_of(const char *name)
{
	static const char *const blocking[] = {"cudaDeviceSynchronize", "cudaStreamSynchronize",
		"cudaEventQuery", "cudaEventSynchronize", "cudaMemcpy", "cudaMemcpyAsync", NULL};
	static const char *const locking[] = {
		"cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync", NULL};

	return (uint8_t)((is_among(name, blocking) ? HTA_PATH_BLOCKING : 0) |
			 (is_among(name, locking) ? HTA_PATH_LOCKING : 0) |
			 (hta_queue_is_launch(name) ? HTA_PATH_LAUNCHING : 0) |
			 (strstr(name, "forward") ? HTA_PATH_FORWARD : 0) |
			 (strstr(name, "autograd") ? HTA_PATH_BACKWARD : 0));
}

static int read_names(struct hta_path *path)
{
	const struct intern *strings = &path->trace->strings;

	path->names = calloc(strings->entries.count + 1, sizeof(*path->names));
	if (!path->names)
		return -ENOMEM;
	for (uint32_t i = 0; i < strings->entries.count; i++)
		path->names[i] = flags_of(intern_get(strings, i));
	return 0;
}

/* ---- the window ---- */

static bool is_row(const struct hta_path *path, const struct trace_event *event)
{
	return trace_view_has(path->view, event) && !hta_is_of_stream(path->trace, event) &&
	       trace_view_end_ns(path->view, event) > trace_view_start_ns(path->view, event) &&
	       strcmp(trace_text(path->trace, event->category_name), "Trace") != 0;
}

/* The instances first … last as one. Returns how many there are. */
static size_t find_instances(const struct hta_path *path, const char *annotation, uint32_t first,
	uint32_t last, struct critical_path *window)
{
	const struct trace_view *view = path->view;
	size_t count = 0;

	window->start_ns = INT64_MAX;
	window->end_ns = INT64_MIN;
	array_foreach (&view->trace->events, event) {
		if (!trace_view_has(view, event) ||
			!strstr(trace_text(view->trace, event->name), annotation))
			continue;
		if (count == first)
			window->name = event->name;
		if (count >= first && count <= last) {
			window->start_ns = MIN(window->start_ns, trace_view_start_ns(view, event));
			window->end_ns = MAX(window->end_ns, trace_view_end_ns(view, event));
		}
		count++;
	}
	return count;
}

/* Up to one nanosecond after the last row. */
static void span_all(const struct hta_path *path, struct critical_path *window)
{
	window->start_ns = INT64_MAX;
	window->end_ns = INT64_MIN;
	array_foreach (&path->trace->events, event) {
		if (!is_row(path, event))
			continue;
		window->start_ns = MIN(window->start_ns, trace_view_start_ns(path->view, event));
		window->end_ns = MAX(window->end_ns, trace_view_end_ns(path->view, event) + 1);
	}
}

static int find_window(const struct hta_path *path, const struct critical_path_options *options,
	struct critical_path *window)
{
	const char *annotation = options->annotation ? options->annotation : "ProfilerStep";
	bool has_instance = options->first <= options->last;
	uint32_t first = has_instance ? options->first : 0;
	size_t count = 0;

	if (annotation[0])
		count = find_instances(
			path, annotation, first, has_instance ? options->last : 0, window);
	if (count)
		return first < count ? 0 : -ENOENT;
	if (annotation[0] && options->annotation)
		return -ENOENT;
	span_all(path, window);
	return 0;
}

/* ---- what belongs to it ---- */

int hta_path_compare_rows(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

/* Rows that begin in the window, its end included, and what they launched. */
static int select_rows(struct hta_path *path, const struct critical_path *window)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < path->trace->events.count; i++) {
		const struct trace_event *event = hta_path_event(path, i);
		struct hta_path_row row = {
			.start_ns = trace_view_start_ns(path->view, event),
			.end_ns = trace_view_end_ns(path->view, event),
			.event = i,
		};
		uint32_t work;

		if (row.start_ns < window->start_ns || row.start_ns > window->end_ns ||
			!is_row(path, event))
			continue;
		r = array_append(&path->rows, row);
		if (r < 0 || hta_path_is_of_device(path, i))
			continue;
		work = hta_path_partner(path, i);
		if (work != MODEL_NONE && hta_is_of_stream(path->trace, hta_path_event(path, work)))
			r = array_append(&path->works, work);
	}
	return r;
}

/* Waits of streams are in all windows. */
static int select_works(struct hta_path *path)
{
	size_t kept = 0;
	int r = 0;

	array_foreach (&path->view->works, work) {
		if (r == 0 && hta_path_event(path, work->row)->name == path->stream_wait)
			r = array_append(&path->works, work->row);
	}
	if (r < 0 || !path->works.count)
		return r;
	qsort(path->works.items, path->works.count, sizeof(*path->works.items),
		hta_path_compare_rows);
	for (size_t i = 0; i < path->works.count; i++) {
		if (!kept || path->works.items[kept - 1] != path->works.items[i])
			path->works.items[kept++] = path->works.items[i];
	}
	path->works.count = kept;
	return 0;
}

static bool has_nodes(const struct hta_path *path, uint32_t row)
{
	static const char *const categories[] = {"cpu_op", "cuda_runtime", "cuda_driver", NULL};

	return is_among(
		trace_text(path->trace, hta_path_event(path, row)->category_name), categories);
}

static int add_nodes(struct hta_path *path)
{
	int r = trace_path_graph_init(&path->graph, path->trace->events.count);

	array_foreach (&path->rows, row) {
		if (r == 0 && has_nodes(path, row->event))
			r = trace_path_graph_add_row(
				&path->graph, row->event, row->start_ns, row->end_ns);
	}
	array_foreach (&path->works, work) {
		const struct trace_event *event = hta_path_event(path, *work);

		if (r == 0 && event->correlation)
			r = trace_path_graph_add_row(&path->graph, *work,
				trace_view_start_ns(path->view, event),
				trace_view_end_ns(path->view, event));
	}
	trace_path_graph_sort(&path->graph);
	return r;
}

/* ---- edges ---- */

/* Two nodes have one edge, the last one added, at the place of the first. */
int hta_path_connect(struct hta_path *path, uint32_t from, uint32_t to, enum trace_path_kind kind,
	bool takes_time, uint32_t event)
{
	uint64_t key = (uint64_t)from << 32 | to, index;
	struct trace_path_edge edge =
		trace_path_edge_of(&path->graph, from, to, kind, takes_time, event);
	int r;

	if (map_u64_get(&path->edge_of_nodes, key, &index)) {
		struct trace_path_edge *old = &path->graph.edges.items[index];

		if (edge.event == MODEL_NONE)
			edge.event = old->event;
		*old = edge;
		return 0;
	}
	r = map_u64_set(&path->edge_of_nodes, key, path->graph.edges.count);
	return r < 0 ? r : array_append(&path->graph.edges, edge);
}

/* Calls that share a lock are done one after the other. */
static int add_locks(struct hta_path *path)
{
	const struct trace_path_node *nodes = path->graph.nodes.items;
	ARRAY_OF(uint32_t) starts = {0};
	uint32_t last = MODEL_NONE;
	int r = 0;

	for (uint32_t node = 0; r == 0 && node < path->graph.nodes.count; node++) {
		if (!hta_path_name_is(path, nodes[node].event, HTA_PATH_LOCKING))
			continue;
		if (nodes[node].is_start)
			r = array_append(&starts, node);
		while (r == 0 && !nodes[node].is_start && starts.count) {
			uint32_t start = starts.items[--starts.count];
			bool own = nodes[start].event == nodes[node].event;

			r = hta_path_connect(path, start, node,
				own ? TRACE_PATH_OPERATOR : TRACE_PATH_DEPENDENCY, own,
				own ? nodes[start].event : MODEL_NONE);
		}
		if (r == 0 && !nodes[node].is_start && last != MODEL_NONE && !nodes[last].is_start)
			r = hta_path_connect(
				path, last, node, TRACE_PATH_DEPENDENCY, false, MODEL_NONE);
		last = node;
	}
	array_done(&starts);
	return r;
}

/* ---- threads ---- */

/* Where a row begins or ends. */
struct point {
	const struct hta_path_row *row;
	uint32_t place; /* of its thread: by process and thread */
	int64_t time_ns;
	bool is_end;
};

struct walk {
	struct hta_path *path;
	ARRAY_OF(uint32_t) open; /* rows */
	uint32_t last;           /* node; MODEL_NONE: none yet */
	uint32_t last_outer;     /* row that the last one lies in */
	uint32_t depth;          /* of rows with nodes */
};

/* add_locks() has joined them. */
static bool share_lock(const struct hta_path *path, uint32_t from, uint32_t to)
{
	const struct trace_path_node *nodes = path->graph.nodes.items;

	return (nodes[from].is_start || !nodes[to].is_start) &&
	       hta_path_name_is(path, nodes[from].event, HTA_PATH_LOCKING) &&
	       hta_path_name_is(path, nodes[to].event, HTA_PATH_LOCKING);
}

static uint32_t innermost(const struct walk *walk)
{
	return walk->open.count ? walk->open.items[walk->open.count - 1] : MODEL_NONE;
}

static int enter(struct walk *walk, uint32_t row)
{
	const struct trace_path_graph *graph = &walk->path->graph;
	uint32_t node = graph->start_nodes[row], outer = innermost(walk);
	int r = array_append(&walk->open, row);

	if (r < 0 || node == MODEL_NONE)
		return r;
	if (walk->last != MODEL_NONE && !share_lock(walk->path, walk->last, node)) {
		if (walk->depth)
			r = hta_path_connect(walk->path, walk->last, node, TRACE_PATH_OPERATOR,
				true, trace_path_owner(graph, walk->last, node, walk->last_outer));
		else
			r = hta_path_connect(walk->path, walk->last, node, TRACE_PATH_DEPENDENCY,
				false, MODEL_NONE);
	}
	walk->last = node;
	walk->last_outer = outer;
	walk->depth++;
	return r;
}

/* Ends the row that was opened last. */
static int leave(struct walk *walk)
{
	const struct trace_path_graph *graph = &walk->path->graph;
	uint32_t row, node;
	int r = 0;

	assert(walk->open.count);
	row = walk->open.items[--walk->open.count];
	node = graph->end_nodes[row];
	if (node == MODEL_NONE)
		return 0;
	if (!share_lock(walk->path, walk->last, node))
		r = hta_path_connect(walk->path, walk->last, node, TRACE_PATH_OPERATOR,
			!hta_path_name_is(walk->path, row, HTA_PATH_BLOCKING),
			trace_path_owner(graph, walk->last, node, walk->last_outer));
	walk->last = node;
	walk->last_outer = innermost(walk);
	walk->depth--;
	return r;
}

static int compare_points(const void *left, const void *right)
{
	const struct point *a = left, *b = right;
	int64_t a_ns = a->row->end_ns - a->row->start_ns, b_ns = b->row->end_ns - b->row->start_ns;
	int sign = a->is_end ? -1 : 1;

	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	if (a->row == b->row)
		return a->is_end ? 1 : -1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->is_end != b->is_end)
		return a->is_end ? -1 : 1;
	if (a_ns != b_ns)
		return a_ns > b_ns ? -sign : sign;
	return a->row->event < b->row->event ? -sign : sign;
}

/* The one thread that has operators or annotations of such names; 0: none, or several. */
static int64_t find_thread(const struct hta_path *path, unsigned flag)
{
	int64_t found = 0;

	array_foreach (&path->rows, row) {
		const struct trace_event *event = hta_path_event(path, row->event);
		int64_t tid = path->trace->tracks.items[event->track].tid;

		if (event->category != TRACE_CPU_OP && event->category != TRACE_USER_ANNOTATION)
			continue;
		if (!hta_path_name_is(path, row->event, flag))
			continue;
		if (found && found != tid)
			return 0;
		found = tid;
	}
	return found;
}

/* Rows of the thread that runs the backward pass become rows of the forward pass's. */
static int merge_threads(const struct hta_path *path, uint32_t *places)
{
	int64_t forward = find_thread(path, HTA_PATH_FORWARD);
	int64_t backward = find_thread(path, HTA_PATH_BACKWARD);
	struct map_u64 forward_of_process = {0};
	int r = 0;

	if (!forward || !backward || forward == backward)
		return 0;
	array_foreach (&path->trace->tracks, track) {
		if (r == 0 && track->tid == forward)
			r = map_u64_set(&forward_of_process, (uint64_t)track->pid,
				(uint64_t)(track - path->trace->tracks.items));
	}
	array_foreach (&path->trace->tracks, track) {
		size_t index = (size_t)(track - path->trace->tracks.items);
		uint64_t other;

		if (track->tid == backward && places[index] != MODEL_NONE &&
			map_u64_get(&forward_of_process, (uint64_t)track->pid, &other))
			places[index] = places[other];
	}
	map_u64_done(&forward_of_process);
	return r;
}

/* Of tracks; MODEL_NONE: it has rows of streams, and is no thread. */
static int find_places(const struct hta_path *path, uint32_t **ret_places)
{
	uint32_t *places = *ret_places = trace_path_places(path->trace);

	if (!places)
		return -ENOMEM;
	array_foreach (&path->trace->events, event) {
		if (event->duration_ns != TRACE_NO_DURATION && hta_is_of_stream(path->trace, event))
			places[event->track] = MODEL_NONE;
	}
	return merge_threads(path, places);
}

static int add_threads(struct hta_path *path)
{
	_cleanup_free_ struct point *points = malloc((2 * path->rows.count + 1) * sizeof(*points));
	_cleanup_free_ uint32_t *places = NULL;
	struct walk walk = {.path = path};
	size_t count = 0;
	int r = points ? find_places(path, &places) : -ENOMEM;

	if (r < 0)
		return r;
	array_foreach (&path->rows, row) {
		uint32_t place = places[hta_path_event(path, row->event)->track];

		if (place == MODEL_NONE)
			continue;
		points[count++] = (struct point){row, place, row->start_ns, false};
		points[count++] = (struct point){row, place, row->end_ns, true};
	}
	qsort(points, count, sizeof(*points), compare_points);
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (!i || points[i - 1].place != points[i].place) {
			walk.last = walk.last_outer = MODEL_NONE;
			walk.depth = 0;
		}
		r = points[i].is_end ? leave(&walk) : enter(&walk, points[i].row->event);
	}
	array_done(&walk.open);
	return r;
}

/* ---- the path ---- */

static enum trace_path_bound bound_of_row(const void *source, uint32_t row)
{
	const struct hta_path *path = source;
	const struct trace_event *event = hta_path_event(path, row);
	const struct trace_work *work = trace_work(path->trace, event);

	if (!work || work->stream == TRACE_NO_NUMBER || work->stream < 0)
		return TRACE_PATH_CPU;
	return hta_kind_of_name(trace_text(path->trace, event->name)) == TRACE_COMMUNICATION
		       ? TRACE_PATH_GPU_COMMUNICATION
		       : TRACE_PATH_GPU_COMPUTE;
}

static int find_path(struct hta_path *path, const struct critical_path_options *options,
	struct critical_path *window)
{
	int r = read_names(path);

	r = r ?: hta_path_devices_init(path);
	r = r ?: find_window(path, options, window);
	r = r ?: select_rows(path, window);
	r = r ?: select_works(path);
	r = r ?: add_nodes(path);
	r = r ?: add_locks(path);
	r = r ?: add_threads(path);
	r = r ?: hta_path_add_works(path);
	return r ?: critical_path_finish(window, path->trace, &path->graph, bound_of_row, path);
}

int hta_paths_init(struct critical_paths *paths, const struct trace_view *view,
	const struct critical_path_options *options)
{
	struct hta_path path = {.view = view, .trace = view->trace, .paths = paths};
	struct critical_path window = {0};
	int r;

	*paths = (struct critical_paths){0};
	r = find_path(&path, options, &window);
	/* A trace without rows has no window. */
	if (r == 0 && window.start_ns != INT64_MAX)
		r = array_append(&paths->windows, window);
	if (r < 0)
		critical_path_done(&window);
	hta_path_devices_done(&path);
	trace_path_graph_done(&path.graph);
	map_u64_done(&path.edge_of_nodes);
	array_done(&path.rows);
	array_done(&path.works);
	free(path.names);
	if (r < 0)
		critical_paths_done(paths);
	return r;
}
