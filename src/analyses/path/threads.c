/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edges of threads. For B and C in A they lead begin A → begin B → end B → begin C → end C →
 * end A: what passes between the ends of an operator's parts is its own time.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path.h"

int trace_path_connect(struct trace_path_window *window, uint32_t from, uint32_t to,
	enum trace_path_kind kind, bool takes_time, uint32_t event)
{
	const struct trace_path_node *nodes = window->graph->nodes.items;

	return trace_path_graph_add(window->graph,
		&(struct trace_path_edge){
			.from = from,
			.to = to,
			.duration_ns = takes_time ? nodes[to].time_ns - nodes[from].time_ns : 0,
			.event = event,
			.kind = (uint8_t)kind,
		});
}

/* A row of the thread at hand. */
struct item {
	const struct trace_path_row *row;
	uint32_t place; /* of its thread, see path.h */
};

/* An operator that lies in no other. */
struct top {
	uint32_t group, track, start, end; /* nodes */
};

struct open_row {
	const struct trace_path_row *row;
	uint32_t parent; /* row; MODEL_NONE: none */
};

struct walk {
	struct trace_path_window *window;
	bool hta;
	ARRAY_OF(struct open_row) open;
	ARRAY_OF(struct top) tops;
	/* Of the thread: */
	uint32_t last;        /* node; MODEL_NONE: none yet */
	uint32_t last_parent; /* row that the last one lies in */
	uint32_t depth;       /* of rows with nodes */
};

/* Whose time passes from one node to the other: see the picture above. */
static uint32_t owner(const struct walk *walk, uint32_t from, uint32_t to)
{
	const struct trace_path_node *nodes = walk->window->graph->nodes.items;

	if (nodes[from].is_start)
		return nodes[from].event;
	return nodes[to].is_start ? walk->last_parent : nodes[to].event;
}

/* HTA: then trace_path_add_locks() has joined them. */
static bool share_lock(const struct walk *walk, uint32_t from, uint32_t to)
{
	const struct trace_path_source *source = walk->window->source;
	const struct trace_path_node *nodes = walk->window->graph->nodes.items;

	return walk->hta && (nodes[from].is_start || !nodes[to].is_start) &&
	       trace_path_name_is(source, nodes[from].event, TRACE_PATH_LOCKING) &&
	       trace_path_name_is(source, nodes[to].event, TRACE_PATH_LOCKING);
}

static int enter(struct walk *walk, const struct trace_path_row *row)
{
	const struct trace_path_source *source = walk->window->source;
	uint32_t node = source->start_nodes[row->event];
	uint32_t parent = MODEL_NONE;
	int r = 0;

	if (walk->open.count)
		parent = walk->open.items[walk->open.count - 1].row->event;
	r = array_append(&walk->open, (struct open_row){row, parent});
	if (r < 0 || node == MODEL_NONE)
		return r;
	if (walk->last != MODEL_NONE && !share_lock(walk, walk->last, node)) {
		if (walk->depth)
			r = trace_path_connect(walk->window, walk->last, node, TRACE_PATH_OPERATOR,
				true, owner(walk, walk->last, node));
		else if (walk->hta)
			r = trace_path_connect(walk->window, walk->last, node,
				TRACE_PATH_DEPENDENCY, false, MODEL_NONE);
	}
	walk->last = node;
	walk->last_parent = parent;
	walk->depth++;
	return r;
}

static int leave(struct walk *walk)
{
	const struct trace_path_source *source = walk->window->source;
	struct open_row open;
	uint32_t node;
	bool waited;
	int r = 0;

	assert(walk->open.count);
	open = walk->open.items[--walk->open.count];
	node = source->end_nodes[open.row->event];
	if (node == MODEL_NONE)
		return 0;
	waited = walk->hta ? trace_path_name_is(source, open.row->event, TRACE_PATH_BLOCKING)
			   : source->blocked[open.row->event];
	if (!share_lock(walk, walk->last, node))
		r = trace_path_connect(walk->window, walk->last, node, TRACE_PATH_OPERATOR, !waited,
			owner(walk, walk->last, node));
	walk->last = node;
	walk->last_parent = open.parent;
	walk->depth--;
	if (!walk->depth && r == 0 && !walk->hta) {
		uint32_t track = source->trace->events.items[open.row->event].track;

		r = array_append(&walk->tops, (struct top){source->groups[track], track,
						      source->start_nodes[open.row->event], node});
	}
	return r;
}

/* ---- ours: each row lies in the ones that are open ---- */

static int walk_thread(struct walk *walk, const struct item *items, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		while (r == 0 && walk->open.count &&
			walk->open.items[walk->open.count - 1].row->end_ns <=
				items[i].row->start_ns)
			r = leave(walk);
		r = r ?: enter(walk, items[i].row);
	}
	while (r == 0 && walk->open.count)
		r = leave(walk);
	return r;
}

/* ---- HTA's: an end closes what was opened last, whoever's end it is ---- */

struct point {
	const struct trace_path_row *row;
	int64_t time_ns;
	bool is_end;
};

static int compare_points(const void *left, const void *right)
{
	const struct point *a = left, *b = right;
	int64_t a_ns = a->row->end_ns - a->row->start_ns, b_ns = b->row->end_ns - b->row->start_ns;
	int sign = a->is_end ? -1 : 1;

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

static int hta_walk_thread(struct walk *walk, const struct item *items, size_t count)
{
	_cleanup_free_ struct point *points = malloc((2 * count + 1) * sizeof(*points));
	int r = 0;

	if (!points)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		points[2 * i] = (struct point){items[i].row, items[i].row->start_ns, false};
		points[2 * i + 1] = (struct point){items[i].row, items[i].row->end_ns, true};
	}
	qsort(points, 2 * count, sizeof(*points), compare_points);
	for (size_t i = 0; r == 0 && i < 2 * count; i++)
		r = points[i].is_end ? leave(walk) : enter(walk, points[i].row);
	return r;
}

/* ---- the threads of a window ---- */

/* HTA: the one thread that has operators or annotations of such names; 0: none, or several. */
static int64_t find_thread(const struct trace_path_window *window, unsigned flag)
{
	const struct trace *trace = window->source->trace;
	int64_t found = 0;

	for (size_t i = 0; i < window->row_count; i++) {
		const struct trace_event *event = &trace->events.items[window->rows[i].event];
		int64_t tid = trace->tracks.items[event->track].tid;

		if (event->category != TRACE_CPU_OP && event->category != TRACE_USER_ANNOTATION)
			continue;
		if (!trace_path_name_is(window->source, window->rows[i].event, flag))
			continue;
		if (found && found != tid)
			return 0;
		found = tid;
	}
	return found;
}

/* HTA: rows of the thread that runs the backward pass become rows of the forward pass's. */
static int merge_threads(const struct trace_path_window *window, uint32_t *places)
{
	const struct trace_path_source *source = window->source;
	const struct trace *trace = source->trace;
	int64_t forward = find_thread(window, TRACE_PATH_FORWARD);
	int64_t backward = find_thread(window, TRACE_PATH_BACKWARD);
	struct map_u64 forward_of_process = {0};
	int r = 0;

	if (!forward || !backward || forward == backward)
		return 0;
	array_foreach (&trace->tracks, track) {
		if (r == 0 && track->tid == forward)
			r = map_u64_set(&forward_of_process, (uint64_t)track->pid,
				(uint64_t)(track - trace->tracks.items));
	}
	array_foreach (&trace->tracks, track) {
		size_t index = (size_t)(track - trace->tracks.items);
		uint64_t other;

		if (track->tid == backward && places[index] != MODEL_NONE &&
			map_u64_get(&forward_of_process, (uint64_t)track->pid, &other))
			places[index] = places[other];
	}
	map_u64_done(&forward_of_process);
	return r;
}

static int compare_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	if (a->row->start_ns != b->row->start_ns)
		return a->row->start_ns < b->row->start_ns ? -1 : 1;
	if (a->row->end_ns != b->row->end_ns)
		return a->row->end_ns > b->row->end_ns ? -1 : 1;
	return a->row->event < b->row->event ? -1 : a->row->event > b->row->event;
}

static int walk_threads(struct walk *walk, struct item *items)
{
	const struct trace_path_window *window = walk->window;
	const struct trace_path_source *source = window->source;
	size_t size = (source->trace->tracks.count + 1) * sizeof(uint32_t), count = 0;
	_cleanup_free_ uint32_t *places = malloc(size);
	int r = 0;

	if (!places)
		return -ENOMEM;
	memcpy(places, source->places, size - sizeof(uint32_t));
	if (walk->hta)
		r = merge_threads(window, places);
	for (size_t i = 0; i < window->row_count; i++) {
		const struct trace_path_row *row = &window->rows[i];
		uint32_t place = places[source->trace->events.items[row->event].track];

		if (place != MODEL_NONE)
			items[count++] = (struct item){row, place};
	}
	qsort(items, count, sizeof(*items), compare_items);
	for (size_t first = 0, next; r == 0 && first < count; first = next) {
		for (next = first + 1; next < count && items[next].place == items[first].place;)
			next++;
		walk->last = MODEL_NONE;
		walk->last_parent = MODEL_NONE;
		walk->depth = 0;
		r = (walk->hta ? hta_walk_thread : walk_thread)(walk, items + first, next - first);
	}
	return r;
}

/* ---- ours: what follows what, on one thread or on those of a group ---- */

static int compare_tops(const void *left, const void *right)
{
	const struct top *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->start < b->start ? -1 : 1;
}

/* An operator follows the one before it on its thread, and what the group did last before it. */
static int link_tops(struct walk *walk)
{
	struct trace_path_window *window = walk->window;
	const struct trace_path_node *nodes = window->graph->nodes.items;
	const struct top *last = NULL, *first = NULL;
	struct map_u64 before = {0};
	uint64_t previous;
	int r = 0;

	if (walk->tops.count)
		qsort(walk->tops.items, walk->tops.count, sizeof(*walk->tops.items), compare_tops);
	array_foreach (&walk->tops, top) {
		if (!first || top->group != first->group) {
			first = top;
			last = NULL;
		}
		if (r == 0 && map_u64_get(&before, top->track, &previous))
			r = trace_path_connect(window, (uint32_t)previous, top->start,
				TRACE_PATH_DEPENDENCY, false, MODEL_NONE);
		if (r == 0 && last && last->track != top->track &&
			nodes[last->end].time_ns <= nodes[top->start].time_ns)
			r = trace_path_connect(window, last->end, top->start, TRACE_PATH_DEPENDENCY,
				false, MODEL_NONE);
		r = r ?: map_u64_set(&before, top->track, top->end);
		if (!last || nodes[top->end].time_ns >= nodes[last->end].time_ns)
			last = top;
	}
	map_u64_done(&before);
	return r;
}

int trace_path_add_threads(struct trace_path_window *window)
{
	struct walk walk = {.window = window, .hta = window->source->view->options.hta_compatible};
	_cleanup_free_ struct item *items = malloc((window->row_count + 1) * sizeof(*items));
	int r;

	if (!items)
		return -ENOMEM;
	r = walk_threads(&walk, items);
	if (r == 0 && !walk.hta)
		r = link_tops(&walk);
	array_done(&walk.open);
	array_done(&walk.tops);
	return r;
}
