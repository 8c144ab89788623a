/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for itself: Tarjan's strongly connected components, with a stack of its own since the
 * depth is foreign.
 */
#include <errno.h>
#include <stdlib.h>

#include "chakra/graph.h"
#include "model/trace.h"

#define MAX_PATH_NODES 12 /* in the text */

struct search {
	const struct chakra_graph *graph;
	uint32_t *order;     /* of discovery, from 1; 0: not seen */
	uint32_t *low;       /* the earliest that is reached */
	uint32_t *component; /* from 1; 0: not known yet */
	uint32_t *at;        /* the next dependency to look at */
	ARRAY_OF(uint32_t) open, path;
	uint32_t next_order, components;
};

static int search_init(struct search *search, const struct chakra_graph *graph)
{
	size_t count = graph->nodes.count + 1;

	search->graph = graph;
	search->order = calloc(count, sizeof(uint32_t));
	search->low = calloc(count, sizeof(uint32_t));
	search->component = calloc(count, sizeof(uint32_t));
	search->at = calloc(count, sizeof(uint32_t));
	return search->order && search->low && search->component && search->at ? 0 : -ENOMEM;
}

static void search_done(struct search *search)
{
	free(search->order);
	free(search->low);
	free(search->component);
	free(search->at);
	array_done(&search->open);
	array_done(&search->path);
}

static int enter(struct search *search, uint32_t node)
{
	search->order[node] = search->low[node] = ++search->next_order;
	return array_append(&search->open, node) ?: array_append(&search->path, node);
}

/* All that it waits for was seen: is it the first of its component? */
static void leave(struct search *search, uint32_t node)
{
	uint32_t member;

	search->path.count--;
	if (search->path.count > 0) {
		uint32_t before = search->path.items[search->path.count - 1];

		search->low[before] = MIN(search->low[before], search->low[node]);
	}
	if (search->low[node] != search->order[node])
		return;
	search->components++;
	do {
		member = search->open.items[--search->open.count];
		search->component[member] = search->components;
	} while (member != node);
}

static int search_from(struct search *search, uint32_t root)
{
	const struct chakra_graph *graph = search->graph;
	int r = enter(search, root);

	while (r == 0 && search->path.count > 0) {
		uint32_t node = search->path.items[search->path.count - 1], on;
		const struct chakra_node *chakra = &graph->nodes.items[node];

		if (search->at[node] == chakra->dep_count) {
			leave(search, node);
			continue;
		}
		on = graph->deps.items[chakra->first_dep + search->at[node]++].on;
		if (!search->order[on])
			r = enter(search, on);
		else if (!search->component[on])
			search->low[node] = MIN(search->low[node], search->order[on]);
	}
	return r;
}

/* The time of a node, or of the nearest caller that has one: what cutting goes by. */
static int64_t *times_of(const struct chakra_graph *graph)
{
	int64_t *times = malloc((graph->nodes.count + 1) * sizeof(*times));

	for (uint32_t i = 0; times && i < graph->nodes.count; i++) {
		int64_t start_ns = chakra_source(graph, i)->start_ns;
		uint32_t parent = graph->parents[i];

		times[i] = start_ns;
		if (start_ns == TRACE_NO_NUMBER && parent != MODEL_NONE && parent < i)
			times[i] = times[parent];
	}
	return times;
}

/* Any node of the same component that this one waits for. */
static uint32_t step_inside(const struct search *search, uint32_t node)
{
	const struct chakra_graph *graph = search->graph;
	const struct chakra_node *chakra = &graph->nodes.items[node];

	for (uint32_t i = 0; i < chakra->dep_count; i++) {
		uint32_t on = graph->deps.items[chakra->first_dep + i].on;

		if (search->component[on] == search->component[node])
			return on;
	}
	return node;
}

/* Steps inside a component come back to where they were: from there on, around once. */
static int tell_path(const struct search *search, uint32_t node, struct strbuf *path)
{
	const struct chakra_graph *graph = search->graph;
	_cleanup_free_ uint8_t *rounds = calloc(graph->nodes.count + 1, sizeof(*rounds));
	uint32_t shown = 0;

	if (!rounds)
		return -ENOMEM;
	for (; rounds[node] == 0; node = step_inside(search, node))
		rounds[node] = 1;
	for (; rounds[node] == 1; node = step_inside(search, node)) {
		struct execution_text name = chakra_source(graph, node)->name;

		rounds[node] = 2;
		if (shown++ < MAX_PATH_NODES)
			strbuf_addf(path, "%llu %.*s -> ",
				(unsigned long long)chakra_source(graph, node)->id,
				(int)MIN(name.length, 40U), name.bytes);
	}
	if (shown > MAX_PATH_NODES)
		strbuf_addf(path, "%u more -> ", shown - MAX_PATH_NODES);
	strbuf_addf(path, "%llu", (unsigned long long)chakra_source(graph, node)->id);
	return strbuf_status(path);
}

/* Counts components of more than one node; tells the path of the first. */
static int count_cycles(
	const struct search *search, const uint32_t *sizes, struct chakra_cycles *cycles)
{
	const struct chakra_graph *graph = search->graph;
	int r = 0;

	for (uint32_t i = 1; i <= search->components; i++) {
		cycles->count += sizes[i] > 1;
		cycles->nodes += sizes[i] > 1 ? sizes[i] : 0;
	}
	for (uint32_t i = 0; r == 0 && i < graph->nodes.count && cycles->path.length == 0; i++) {
		if (sizes[search->component[i]] > 1)
			r = tell_path(search, i, &cycles->path);
	}
	return r;
}

static int cut_back(struct chakra_graph *graph, const struct search *search, uint64_t *cut)
{
	_cleanup_free_ int64_t *times = times_of(graph);
	size_t kept = 0;

	if (!times)
		return -ENOMEM;
	array_foreach (&graph->deps, dep) {
		bool is_inside = search->component[dep->from] == search->component[dep->on];
		bool is_back = times[dep->on] > times[dep->from] ||
			       (times[dep->on] == times[dep->from] && dep->on > dep->from);

		if (is_inside && is_back)
			(*cut)++;
		else
			graph->deps.items[kept++] = *dep;
	}
	graph->deps.count = kept;
	return chakra_graph_sort(graph);
}

int chakra_find_cycles(struct chakra_graph *graph, bool cut, struct chakra_cycles *ret_cycles)
{
	_cleanup_(search_done) struct search search = {0};
	_cleanup_free_ uint32_t *sizes = calloc(graph->nodes.count + 1, sizeof(*sizes));
	int r = search_init(&search, graph);

	if (!sizes)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < graph->nodes.count; i++) {
		if (!search.order[i])
			r = search_from(&search, i);
	}
	for (uint32_t i = 0; r == 0 && i < graph->nodes.count; i++)
		sizes[search.component[i]]++;
	r = r ?: count_cycles(&search, sizes, ret_cycles);
	if (r == 0 && cut && ret_cycles->count > 0)
		r = cut_back(graph, &search, &ret_cycles->cut);
	return r;
}
