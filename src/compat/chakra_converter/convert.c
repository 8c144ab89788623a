/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "compat/chakra_converter/internal.h"
#include "model/trace.h"

/* In the order of the file: device nodes are converted with the host node that launched them, and a
 * caller that comes later is none. */
static int add_calls(struct chakra_graph *graph)
{
	const struct execution_trace *trace = graph->trace;
	_cleanup_free_ uint8_t *converted = calloc(graph->nodes.count + 1, 1);
	int r = converted ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < graph->nodes.count; i++)
		graph->nodes.items[i].is_removed = true;
	for (size_t s = 0; r == 0 && s < trace->nodes.count; s++) {
		uint32_t node = graph->positions[s];

		if (node == MODEL_NONE || trace->nodes.items[s].work != MODEL_NONE)
			continue;
		if (graph->parents[node] != MODEL_NONE && converted[graph->parents[node]])
			r = chakra_graph_add(graph, node, graph->parents[node], CHAKRA_DEP_CALL);
		converted[node] = 1;
		graph->nodes.items[node].is_removed = false;
		for (uint32_t c = graph->first_child[node];
			r == 0 && c < graph->first_child[node + 1]; c++) {
			uint32_t child = graph->children[c];

			if (chakra_source(graph, child)->work == MODEL_NONE)
				continue;
			converted[child] = 1;
			graph->nodes.items[child].is_removed = false;
			r = chakra_graph_add(graph, child, node, CHAKRA_DEP_CALL);
		}
	}
	return r;
}

/* What no one waits for and that waits for no one is left out. Returns how many nodes. */
static uint64_t remove_lonely(struct chakra_graph *graph)
{
	uint64_t removed = 0;

	for (uint32_t i = 0; i < graph->nodes.count; i++)
		graph->nodes.items[i].is_main = false;
	array_foreach (&graph->deps, dep) {
		if (dep->kind == CHAKRA_DEP_CALL)
			continue;
		graph->nodes.items[dep->from].is_main = true;
		graph->nodes.items[dep->on].is_main = true;
	}
	for (uint32_t i = 0; i < graph->nodes.count; i++) {
		struct chakra_node *node = &graph->nodes.items[i];

		removed += !node->is_main && !node->is_removed;
		node->is_removed = node->is_removed || !node->is_main;
		node->is_main = false;
	}
	return removed;
}

/*
 * Device nodes wait for the host node that was visited before them. Dependencies between a host and
 * the device are compared by times that are never set, and so all are dropped.
 */
static int walk_thread(struct chakra_walk *walk, uint32_t root)
{
	struct chakra_graph *graph = walk->graph;
	uint32_t node, last = MODEL_NONE;
	int r = array_append(&walk->stack, root);

	while (r == 0 && (node = chakra_walk_next(walk)) != MODEL_NONE) {
		const struct execution_node *source = chakra_source(graph, node);
		bool is_host = source->work == MODEL_NONE;
		uint32_t other = chakra_graph_find(graph, source->inter_thread_dep);
		bool has_other = is_host && source->inter_thread_dep != EXECUTION_NO_ID &&
				 source->inter_thread_dep != 0;

		walk->result.missing += has_other && other == MODEL_NONE;
		walk->result.late += source->sync_dep_count;
		if (has_other && other != MODEL_NONE)
			r = chakra_graph_add(graph, node, other, CHAKRA_DEP_OTHER_THREAD);
		if (r == 0 && last != MODEL_NONE)
			r = chakra_graph_add(
				graph, node, last, is_host ? CHAKRA_DEP_THREAD : CHAKRA_DEP_LAUNCH);
		if (is_host)
			last = node;
		r = r ?: chakra_walk_into(walk, node);
	}
	return r;
}

static int order_threads(struct chakra_graph *graph, struct chakra_thread_result *ret_result)
{
	_cleanup_chakra_walk_ struct chakra_walk walk = {0};
	int r = chakra_walk_init(&walk, graph);

	for (uint32_t i = 0; r == 0 && i < graph->trace->nodes.count; i++) {
		uint32_t node = graph->positions[i];

		if (node != MODEL_NONE && chakra_is_thread_root(&graph->trace->nodes.items[i]))
			r = walk_thread(&walk, node);
	}
	*ret_result = walk.result;
	return r;
}

static int find_order(struct chakra_graph *graph, struct chakra_thread_result *ret_result)
{
	int r = add_calls(graph);

	r = r ?: order_threads(graph, ret_result);
	if (r == 0)
		ret_result->removed = remove_lonely(graph);
	return r;
}

/* Cut to whole microseconds; optimizers take none. */
static uint64_t duration_us(const struct execution_node *node)
{
	if (execution_text_contains(node->name, "Optimizer.step"))
		return 0;
	return (uint64_t)node->exclusive_ns / NS_PER_US;
}

const struct chakra_definition chakra_converter = {
	.has_process_root = true,
	.leaves_orphans = true,
	.has_no_copies = true,
	.is_plain = true,
	.order = find_order,
	.find_collective = chakra_converter_collective,
	.duration_us = duration_us,
};
