/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edges of threads. For B and C in A they lead begin A → begin B → end B → begin C → end C →
 * end A: what passes between the ends of an operator's parts is its own time.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "analyses/path/path.h"

/* A row of the thread at hand. */
struct item {
	const struct trace_path_row *row;
	uint32_t place; /* of its thread, see path.h */
};

/* An operator that lies in no other. */
struct top {
	uint32_t group, track, start, end; /* nodes */
};

struct walk {
	struct trace_path_window *window;
	ARRAY_OF(const struct trace_path_row *) open;
	ARRAY_OF(struct top) tops;
	/* Of the thread: */
	uint32_t last;        /* node */
	uint32_t last_parent; /* row that the last one lies in */
};

/* The row that was opened last; MODEL_NONE: none. */
static uint32_t innermost(const struct walk *walk)
{
	return walk->open.count ? walk->open.items[walk->open.count - 1]->event : MODEL_NONE;
}

/* What passes between the last node and this one is an operator's time. */
static int connect_last(struct walk *walk, uint32_t node, bool takes_time)
{
	struct trace_path_graph *graph = walk->window->graph;

	return trace_path_connect(graph, walk->last, node, TRACE_PATH_OPERATOR, takes_time,
		trace_path_owner(graph, walk->last, node, walk->last_parent));
}

static int enter(struct walk *walk, const struct trace_path_row *row)
{
	uint32_t node = walk->window->graph->start_nodes[row->event];
	uint32_t parent = innermost(walk);
	int r = array_append(&walk->open, row);

	if (r == 0 && parent != MODEL_NONE)
		r = connect_last(walk, node, true);
	walk->last = node;
	walk->last_parent = parent;
	return r;
}

static int leave(struct walk *walk)
{
	const struct trace_path_source *source = walk->window->source;
	const struct trace_path_graph *graph = walk->window->graph;
	uint32_t row, node, track;
	int r;

	assert(walk->open.count);
	row = walk->open.items[--walk->open.count]->event;
	node = graph->end_nodes[row];
	r = connect_last(walk, node, !source->blocked[row]);
	walk->last = node;
	walk->last_parent = innermost(walk);
	if (r < 0 || walk->open.count)
		return r;
	track = source->trace->events.items[row].track;
	return array_append(&walk->tops,
		(struct top){source->groups[track], track, graph->start_nodes[row], node});
}

/* Each row lies in the ones that are open. */
static int walk_thread(struct walk *walk, const struct item *items, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		while (r == 0 && walk->open.count &&
			walk->open.items[walk->open.count - 1]->end_ns <= items[i].row->start_ns)
			r = leave(walk);
		r = r ?: enter(walk, items[i].row);
	}
	while (r == 0 && walk->open.count)
		r = leave(walk);
	return r;
}

/* ---- the threads of a window ---- */

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
	size_t count = window->row_count;
	int r = 0;

	for (size_t i = 0; i < count; i++) {
		const struct trace_path_row *row = &window->rows[i];
		uint32_t track = source->trace->events.items[row->event].track;

		items[i] = (struct item){row, source->places[track]};
	}
	qsort(items, count, sizeof(*items), compare_items);
	for (size_t first = 0, next; r == 0 && first < count; first = next) {
		for (next = first + 1; next < count && items[next].place == items[first].place;)
			next++;
		r = walk_thread(walk, items + first, next - first);
	}
	return r;
}

/* ---- what follows what, on one thread or on those of a group ---- */

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
			r = trace_path_connect(window->graph, (uint32_t)previous, top->start,
				TRACE_PATH_DEPENDENCY, false, MODEL_NONE);
		if (r == 0 && last && last->track != top->track &&
			nodes[last->end].time_ns <= nodes[top->start].time_ns)
			r = trace_path_connect(window->graph, last->end, top->start,
				TRACE_PATH_DEPENDENCY, false, MODEL_NONE);
		r = r ?: map_u64_set(&before, top->track, top->end);
		if (!last || nodes[top->end].time_ns >= nodes[last->end].time_ns)
			last = top;
	}
	map_u64_done(&before);
	return r;
}

int trace_path_add_threads(struct trace_path_window *window)
{
	struct walk walk = {.window = window};
	_cleanup_free_ struct item *items = malloc((window->row_count + 1) * sizeof(*items));
	int r;

	if (!items)
		return -ENOMEM;
	r = walk_threads(&walk, items);
	if (r == 0)
		r = link_tops(&walk);
	array_done(&walk.open);
	array_done(&walk.tops);
	return r;
}
