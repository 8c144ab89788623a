/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/path/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int trace_path_graph_init(struct trace_path_graph *graph, size_t row_count)
{
	size_t size = (row_count + 1) * sizeof(*graph->start_nodes);

	*graph = (struct trace_path_graph){.start_nodes = malloc(size), .end_nodes = malloc(size)};
	if (!graph->start_nodes || !graph->end_nodes)
		return -ENOMEM;
	memset(graph->start_nodes, 0xff, size);
	memset(graph->end_nodes, 0xff, size);
	return 0;
}

void trace_path_graph_done(struct trace_path_graph *graph)
{
	array_done(&graph->nodes);
	array_done(&graph->edges);
	free(graph->start_nodes);
	free(graph->end_nodes);
}

void trace_path_graph_clear(struct trace_path_graph *graph)
{
	array_foreach (&graph->nodes, node) {
		graph->start_nodes[node->event] = MODEL_NONE;
		graph->end_nodes[node->event] = MODEL_NONE;
	}
	array_clear(&graph->nodes);
	array_clear(&graph->edges);
}

int trace_path_graph_add_row(
	struct trace_path_graph *graph, uint32_t row, int64_t start_ns, int64_t end_ns)
{
	int r = array_append(&graph->nodes, (struct trace_path_node){start_ns, row, true});

	return r ?: array_append(&graph->nodes, (struct trace_path_node){end_ns, row, false});
}

static int compare_nodes(const void *left, const void *right)
{
	const struct trace_path_node *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->event != b->event)
		return a->event < b->event ? -1 : 1;
	return b->is_start - a->is_start;
}

void trace_path_graph_sort(struct trace_path_graph *graph)
{
	if (graph->nodes.count)
		qsort(graph->nodes.items, graph->nodes.count, sizeof(*graph->nodes.items),
			compare_nodes);
	for (uint32_t i = 0; i < graph->nodes.count; i++) {
		const struct trace_path_node *node = &graph->nodes.items[i];

		(node->is_start ? graph->start_nodes : graph->end_nodes)[node->event] = i;
	}
}

struct trace_path_edge trace_path_edge_of(const struct trace_path_graph *graph, uint32_t from,
	uint32_t to, enum trace_path_kind kind, bool takes_time, uint32_t event)
{
	const struct trace_path_node *nodes = graph->nodes.items;

	return (struct trace_path_edge){
		.from = from,
		.to = to,
		.duration_ns = takes_time ? nodes[to].time_ns - nodes[from].time_ns : 0,
		.event = event,
		.kind = (uint8_t)kind,
	};
}

int trace_path_connect(struct trace_path_graph *graph, uint32_t from, uint32_t to,
	enum trace_path_kind kind, bool takes_time, uint32_t event)
{
	return array_append(
		&graph->edges, trace_path_edge_of(graph, from, to, kind, takes_time, event));
}

uint32_t trace_path_owner(
	const struct trace_path_graph *graph, uint32_t from, uint32_t to, uint32_t outer)
{
	const struct trace_path_node *nodes = graph->nodes.items;

	if (nodes[from].is_start)
		return nodes[from].event;
	return nodes[to].is_start ? outer : nodes[to].event;
}

/* Edges that leave, or reach, each node, in the order in which they were added. */
struct adjacency {
	uint32_t *first; /* of each node, and one more */
	uint32_t *edges;
};

static void adjacency_done(struct adjacency *adjacency)
{
	free(adjacency->first);
	free(adjacency->edges);
}

static uint32_t end_of(const struct trace_path_edge *edge, bool leaving)
{
	return leaving ? edge->from : edge->to;
}

static int adjacency_init(
	struct adjacency *adjacency, const struct trace_path_graph *graph, bool leaving)
{
	adjacency->first = calloc(graph->nodes.count + 2, sizeof(*adjacency->first));
	adjacency->edges = malloc((graph->edges.count + 1) * sizeof(*adjacency->edges));
	if (!adjacency->first || !adjacency->edges)
		return -ENOMEM;
	/* Counted one place late, so that filling in moves each first to its place. */
	array_foreach (&graph->edges, edge)
		adjacency->first[end_of(edge, leaving) + 2]++;
	for (size_t i = 2; i < graph->nodes.count + 2; i++)
		adjacency->first[i] += adjacency->first[i - 1];
	for (uint32_t i = 0; i < graph->edges.count; i++) {
		uint32_t node = end_of(&graph->edges.items[i], leaving);

		adjacency->edges[adjacency->first[node + 1]++] = i;
	}
	return 0;
}

/* What is known of a node when all before it are done. */
struct reached {
	int64_t length_ns;
	uint32_t edge; /* the last of the longest path to it; MODEL_NONE: it begins here */
};

static int64_t length_of(const struct trace_path_edge *edge)
{
	return MAX(edge->duration_ns, (int64_t)0);
}

static struct reached reach(const struct trace_path_graph *graph, const struct adjacency *before,
	const struct reached *reached, uint32_t node)
{
	struct reached best = {.edge = MODEL_NONE};

	for (uint32_t i = before->first[node]; i < before->first[node + 1]; i++) {
		const struct trace_path_edge *edge = &graph->edges.items[before->edges[i]];
		int64_t length_ns = reached[edge->from].length_ns + length_of(edge);

		if (best.edge == MODEL_NONE || length_ns > best.length_ns)
			best = (struct reached){length_ns, before->edges[i]};
	}
	return best;
}

/* Visits nodes when all before them are done. Returns how many there were. */
static size_t visit(const struct trace_path_graph *graph, const struct adjacency *before,
	const struct adjacency *after, uint32_t *queue, uint32_t *missing, struct reached *reached)
{
	size_t done = 0, queued = 0;

	for (uint32_t node = 0; node < graph->nodes.count; node++) {
		missing[node] = before->first[node + 1] - before->first[node];
		if (!missing[node])
			queue[queued++] = node;
	}
	for (; done < queued; done++) {
		uint32_t node = queue[done];

		reached[node] = reach(graph, before, reached, node);
		for (uint32_t i = after->first[node]; i < after->first[node + 1]; i++) {
			uint32_t next = graph->edges.items[after->edges[i]].to;

			if (--missing[next] == 0)
				queue[queued++] = next;
		}
	}
	return done;
}

static int collect(const struct trace_path_graph *graph, const struct reached *reached,
	const uint32_t *queue, size_t count, struct trace_path_longest *longest)
{
	uint32_t last = queue[0], *edges;
	int r = 0;

	for (size_t i = 1; i < count; i++) {
		if (reached[queue[i]].length_ns > reached[last].length_ns)
			last = queue[i];
	}
	for (uint32_t edge = reached[last].edge; r == 0 && edge != MODEL_NONE;
		edge = reached[graph->edges.items[edge].from].edge)
		r = array_append(&longest->edges, edge);
	edges = longest->edges.items;
	for (size_t i = 0, j = longest->edges.count; i + 1 < j; i++) {
		uint32_t edge = edges[i];

		edges[i] = edges[--j];
		edges[j] = edge;
	}
	return r;
}

int trace_path_graph_longest(
	const struct trace_path_graph *graph, struct trace_path_longest *ret_longest)
{
	_cleanup_(adjacency_done) struct adjacency before = {0};
	_cleanup_(adjacency_done) struct adjacency after = {0};
	_cleanup_free_ struct reached *reached = NULL;
	_cleanup_free_ uint32_t *queue = NULL;
	_cleanup_free_ uint32_t *missing = NULL;
	size_t count = graph->nodes.count, done;

	if (adjacency_init(&before, graph, false) < 0 || adjacency_init(&after, graph, true) < 0)
		return -ENOMEM;
	reached = calloc(count + 1, sizeof(*reached));
	queue = malloc((count + 1) * sizeof(*queue));
	missing = malloc((count + 1) * sizeof(*missing));
	if (!reached || !queue || !missing)
		return -ENOMEM;
	array_clear(&ret_longest->edges);
	ret_longest->nodes = 0;
	for (size_t i = 0; i < count; i++)
		ret_longest->nodes += before.first[i] < before.first[i + 1] ||
				      after.first[i] < after.first[i + 1];
	done = visit(graph, &before, &after, queue, missing, reached);
	ret_longest->cyclic_nodes = count - done;
	return done ? collect(graph, reached, queue, done, ret_longest) : 0;
}

void trace_path_longest_done(struct trace_path_longest *longest)
{
	array_done(&longest->edges);
}
