/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edges of devices. Work begins when the last of what it waits for is there: its launch, the
 * work before it on its stream, the event that its stream waits for, and other work of
 * its graph. An edge leads from that one alone.
 */
#include <stdlib.h>

#include "analyses/path/path.h"

/* Work that begins later than this after other work waited for something that is not known. */
#define KERNEL_DELAY_LIMIT_NS (1500 * (int64_t)NS_PER_US)

/* Something that work waited for. */
struct cause {
	uint32_t node;      /* MODEL_NONE: there is none, or it lies outside of the window */
	int64_t outside_ns; /* when that came to pass; INT64_MIN: there is none */
	enum trace_path_kind kind;
	uint32_t event; /* whose time passes until the work begins */
};

enum { CAUSES_MAX = 4 };

/* Work by its launch, then by its end, then by its own number. */
struct ended {
	uint32_t call, work;
	int64_t end_ns;
};

struct works {
	struct trace_path_window *window;
	ARRAY_OF(struct ended) ended;
};

static const struct cause no_cause = {.node = MODEL_NONE, .outside_ns = INT64_MIN};

static const struct trace_view_work *work_of(const struct works *works, uint64_t work)
{
	return &works->window->source->view->works.items[work];
}

static uint32_t end_node(const struct trace_path_window *window, uint32_t work)
{
	const struct trace_view_work *works = window->source->view->works.items;

	return work == MODEL_NONE ? MODEL_NONE : window->graph->end_nodes[works[work].row];
}

/* ---- calls that wait ---- */

static int add_wait(struct trace_path_window *window, uint32_t call)
{
	struct trace_path_source *source = window->source;
	const struct trace_path_node *nodes = window->graph->nodes.items;
	uint32_t from = end_node(window, trace_path_waited_by_call(source, call));
	uint32_t to = window->graph->end_nodes[call];

	if (from == MODEL_NONE ||
		nodes[from].time_ns <= nodes[window->graph->start_nodes[call]].time_ns)
		return 0;
	if (nodes[from].time_ns > nodes[to].time_ns) {
		source->paths->backward_edges++;
		return 0;
	}
	source->blocked[call] = 1;
	return trace_path_connect(window->graph, from, to, TRACE_PATH_SYNC, true, call);
}

int trace_path_add_waits(struct trace_path_window *window)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < window->row_count; i++)
		r = add_wait(window, window->rows[i].event);
	return r;
}

/* ---- work ---- */

static struct cause cause_at(
	uint32_t node, int64_t time_ns, enum trace_path_kind kind, uint32_t event)
{
	return (struct cause){node, node == MODEL_NONE ? time_ns : INT64_MIN, kind, event};
}

static struct cause launch_of(const struct works *works, const struct trace_view_work *work)
{
	if (work->launch == MODEL_NONE)
		return no_cause;
	return cause_at(works->window->graph->start_nodes[work->launch], INT64_MIN,
		TRACE_PATH_LAUNCH_DELAY, work->row);
}

static struct cause end_of(const struct works *works, uint32_t index)
{
	const struct trace_view_work *work = work_of(works, index);

	return cause_at(works->window->graph->end_nodes[work->row], work->end_ns,
		TRACE_PATH_KERNEL_DELAY, work->row);
}

/* Work that begins while the one before it runs waited for that one's beginning at the most. */
static struct cause before_on_stream(const struct works *works, uint32_t index)
{
	uint32_t before = trace_path_before(works->window->source, index);
	const struct trace_view_work *work;

	if (before == MODEL_NONE)
		return no_cause;
	work = work_of(works, before);
	if (work->end_ns <= work_of(works, index)->start_ns)
		return end_of(works, before);
	return cause_at(works->window->graph->start_nodes[work->row], work->start_ns,
		TRACE_PATH_OPERATOR, work->row);
}

static struct cause waited_for(const struct works *works, uint32_t index)
{
	uint32_t other = trace_path_waited_by_work(works->window->source, index);

	return other == MODEL_NONE ? no_cause : end_of(works, other);
}

static int compare_ended(const void *left, const void *right)
{
	const struct ended *a = left, *b = right;

	if (a->call != b->call)
		return a->call < b->call ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	return a->work < b->work ? -1 : a->work > b->work;
}

static int sort_by_call(struct works *works)
{
	int r = 0;

	array_foreach (&works->window->works, index) {
		const struct trace_view_work *work = work_of(works, *index);

		if (r == 0 && work->launch != MODEL_NONE)
			r = array_append(
				&works->ended, (struct ended){work->launch, *index, work->end_ns});
	}
	if (works->ended.count)
		qsort(works->ended.items, works->ended.count, sizeof(*works->ended.items),
			compare_ended);
	return r;
}

/*
 * Branches of a graph, on several streams, wait for each other: the trace does not say where. What
 * ended last before the work began is taken for it.
 */
static struct cause before_in_graph(const struct works *works, uint32_t index)
{
	const struct trace_view_work *work = work_of(works, index);
	struct ended key = {work->launch, index, work->start_ns};
	size_t first = 0, last = works->ended.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (compare_ended(&works->ended.items[middle], &key) < 0)
			first = middle + 1;
		else
			last = middle;
	}
	if (!first || work->launch == MODEL_NONE ||
		works->ended.items[first - 1].call != work->launch)
		return no_cause;
	return end_of(works, works->ended.items[first - 1].work);
}

/* The latest of the causes that lie before the work. */
static const struct cause *find_last(
	const struct works *works, const struct cause *causes, uint32_t start)
{
	const struct trace_path_node *nodes = works->window->graph->nodes.items;
	const struct cause *last = NULL;

	for (size_t i = 0; i < CAUSES_MAX; i++) {
		uint32_t node = causes[i].node;

		if (node == MODEL_NONE)
			continue;
		if (nodes[node].time_ns > nodes[start].time_ns)
			works->window->source->paths->backward_edges++;
		else if (!last || nodes[node].time_ns > nodes[last->node].time_ns)
			last = &causes[i];
	}
	return last;
}

/* Did the work wait for something outside of the window that came to pass later? */
static bool is_outside(const struct works *works, const struct cause *causes,
	const struct cause *last, uint32_t start)
{
	const struct trace_path_node *nodes = works->window->graph->nodes.items;

	for (size_t i = 0; i < CAUSES_MAX; i++) {
		if (causes[i].outside_ns > nodes[last->node].time_ns &&
			causes[i].outside_ns <= nodes[start].time_ns)
			return true;
	}
	return false;
}

static int connect_causes(const struct works *works, const struct cause *causes, uint32_t start)
{
	const struct trace_path_node *nodes = works->window->graph->nodes.items;
	const struct cause *last = find_last(works, causes, start);
	struct critical_paths *paths = works->window->source->paths;
	int64_t delay_ns;

	if (!last)
		return 0;
	delay_ns = nodes[start].time_ns - nodes[last->node].time_ns;
	if (is_outside(works, causes, last, start))
		return trace_path_connect(works->window->graph, last->node, start,
			TRACE_PATH_EARLIER_DELAY, true, nodes[start].event);
	if (last->kind == TRACE_PATH_KERNEL_DELAY && delay_ns >= KERNEL_DELAY_LIMIT_NS) {
		paths->unexplained_gaps++;
		paths->unexplained_ns += delay_ns;
		return trace_path_connect(works->window->graph, last->node, start,
			TRACE_PATH_DEPENDENCY, false, MODEL_NONE);
	}
	return trace_path_connect(
		works->window->graph, last->node, start, last->kind, true, last->event);
}

static int add_work(struct works *works, uint32_t index)
{
	struct trace_path_graph *graph = works->window->graph;
	const struct trace_view_work *work = work_of(works, index);
	struct cause causes[CAUSES_MAX] = {
		before_on_stream(works, index),
		waited_for(works, index),
		before_in_graph(works, index),
		launch_of(works, work),
	};
	uint32_t start = graph->start_nodes[work->row];
	int r = trace_path_connect(
		graph, start, graph->end_nodes[work->row], TRACE_PATH_OPERATOR, true, work->row);

	r = r ?: connect_causes(works, causes, start);
	return r;
}

int trace_path_add_works(struct trace_path_window *window)
{
	struct works works = {.window = window};
	int r = sort_by_call(&works);

	for (size_t i = 0; r == 0 && i < window->works.count; i++)
		r = add_work(&works, window->works.items[i]);
	array_done(&works.ended);
	return r;
}
