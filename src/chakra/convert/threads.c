/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of host nodes. Simulators want to know what ran after what: an operator waits for the
 * one that began before it in its thread, its caller or another one, as in chakra_converter.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "chakra/convert/graph.h"
#include "model/trace.h"

bool chakra_is_thread_root(const struct execution_node *node)
{
	return execution_text_equals(node->name, "[pytorch|profiler|execution_trace|thread]") ||
	       execution_text_equals(node->name, "[pytorch|profiler|execution_graph|thread]");
}

int chakra_walk_init(struct chakra_walk *walk, struct chakra_graph *graph)
{
	walk->graph = graph;
	walk->visited = calloc(graph->nodes.count + 1, sizeof(*walk->visited));
	return walk->visited ? 0 : -ENOMEM;
}

void chakra_walk_done(struct chakra_walk *walk)
{
	array_done(&walk->stack);
	free(walk->visited);
}

uint32_t chakra_walk_next(struct chakra_walk *walk)
{
	while (walk->stack.count > 0) {
		uint32_t node = walk->stack.items[--walk->stack.count];

		if (!walk->visited[node]) {
			walk->visited[node] = 1;
			return node;
		}
	}
	return MODEL_NONE;
}

int chakra_walk_into(struct chakra_walk *walk, uint32_t node)
{
	const struct chakra_graph *graph = walk->graph;
	int r = 0;

	for (uint32_t i = graph->first_child[node + 1]; r == 0 && i > graph->first_child[node];
		i--) {
		uint32_t child = graph->children[i - 1];

		if (!walk->visited[child] && !graph->nodes.items[child].is_removed)
			r = array_append(&walk->stack, child);
	}
	return r;
}

static bool is_later(const struct execution_node *node, const struct execution_node *than)
{
	return node->start_ns != TRACE_NO_NUMBER && than->start_ns != TRACE_NO_NUMBER &&
	       node->start_ns > than->start_ns;
}

/* Of other nodes by id, where they are there and did not begin later. */
static int add_by_id(
	struct chakra_walk *walk, uint32_t from, uint64_t id, enum chakra_dep_kind kind)
{
	struct chakra_graph *graph = walk->graph;
	uint32_t on = chakra_graph_find(graph, id);

	if (on == MODEL_NONE) {
		walk->result.missing++;
		return 0;
	}
	if (is_later(chakra_source(graph, on), chakra_source(graph, from))) {
		walk->result.late++;
		return 0;
	}
	return chakra_graph_add(graph, from, on, kind);
}

static int add_given(struct chakra_walk *walk, uint32_t node)
{
	const struct execution_node *source = chakra_source(walk->graph, node);
	const uint64_t *sync = walk->graph->trace->deps.items + source->first_sync_dep;
	int r = 0;

	if (source->inter_thread_dep != EXECUTION_NO_ID)
		r = add_by_id(walk, node, source->inter_thread_dep, CHAKRA_DEP_OTHER_THREAD);
	for (uint32_t i = 0; r == 0 && i < source->sync_dep_count; i++)
		r = add_by_id(walk, node, sync[i], CHAKRA_DEP_SYNC);
	return r;
}

/* Its operator; of work that was launched outside of any, the one before the launch, too. */
static int add_launch(struct chakra_walk *walk, uint32_t node)
{
	struct chakra_graph *graph = walk->graph;
	uint64_t before = chakra_source(graph, node)->inter_thread_dep;
	int r = 0;

	if (graph->parents[node] != MODEL_NONE)
		r = chakra_graph_add(graph, node, graph->parents[node], CHAKRA_DEP_LAUNCH);
	if (r == 0 && before != EXECUTION_NO_ID)
		r = add_by_id(walk, node, before, CHAKRA_DEP_LAUNCH);
	return r;
}

/* One host node after the other; `last` is the one before. */
static int walk_thread(struct chakra_walk *walk, uint32_t root, uint32_t *last)
{
	struct chakra_graph *graph = walk->graph;
	int r = array_append(&walk->stack, root);
	uint32_t node;

	while (r == 0 && (node = chakra_walk_next(walk)) != MODEL_NONE) {
		if (chakra_source(graph, node)->work == MODEL_NONE) {
			r = add_given(walk, node);
			if (r == 0 && *last != MODEL_NONE)
				r = chakra_graph_add(graph, node, *last, CHAKRA_DEP_THREAD);
			*last = node;
		} else {
			r = add_launch(walk, node);
		}
		r = r ?: chakra_walk_into(walk, node);
	}
	return r;
}

int chakra_order_threads(struct chakra_graph *graph, struct chakra_thread_result *ret_result)
{
	_cleanup_chakra_walk_ struct chakra_walk walk = {0};
	_cleanup_(map_u64_done) struct map_u64 last_of = {0}; /* thread id → node */
	int r = chakra_walk_init(&walk, graph);

	for (uint32_t i = 0; r == 0 && i < graph->nodes.count; i++) {
		uint64_t tid = chakra_source(graph, i)->tid, before;
		uint32_t last = MODEL_NONE;

		if (graph->parents[i] != MODEL_NONE)
			continue;
		if (map_u64_get(&last_of, tid, &before))
			last = (uint32_t)before;
		r = walk_thread(&walk, i, &last);
		if (r == 0 && last != MODEL_NONE)
			r = map_u64_set(&last_of, tid, last);
	}
	*ret_result = walk.result;
	return r;
}
