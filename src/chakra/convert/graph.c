/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/convert/graph.h"

#include <stdlib.h>

#include "chakra/convert/convert.h"

static const char *const kind_names[CHAKRA_DEP_KIND_MAX] = {
	[CHAKRA_DEP_CALL] = "call",
	[CHAKRA_DEP_OTHER_THREAD] = "other thread",
	[CHAKRA_DEP_THREAD] = "thread",
	[CHAKRA_DEP_LAUNCH] = "launch",
	[CHAKRA_DEP_SYNC] = "sync",
	[CHAKRA_DEP_STREAM] = "stream",
	[CHAKRA_DEP_EVENT] = "event",
};

const char *chakra_dep_kind_to_string(enum chakra_dep_kind kind)
{
	return kind_names[kind];
}

uint32_t chakra_graph_find(const struct chakra_graph *graph, uint64_t id)
{
	const struct execution_node *node =
		id == EXECUTION_NO_ID ? NULL : execution_trace_find(graph->trace, id);

	return node ? graph->positions[node - graph->trace->nodes.items] : MODEL_NONE;
}

int chakra_graph_add(
	struct chakra_graph *graph, uint32_t from, uint32_t on, enum chakra_dep_kind kind)
{
	if (from == on)
		return 0;
	return array_append(
		&graph->deps, (struct chakra_dep){.from = from, .on = on, .kind = (uint8_t)kind});
}

/* By counting: what was added first stays first, and calls are added before all others. */
int chakra_graph_sort(struct chakra_graph *graph)
{
	size_t count = graph->nodes.count, kept = 0;
	_cleanup_free_ uint32_t *ends = calloc(count + 1, sizeof(*ends));
	_cleanup_free_ uint32_t *seen = calloc(count + 1, sizeof(*seen)); /* by whom last, + 1 */
	_cleanup_free_ struct chakra_dep *sorted = calloc(graph->deps.count + 1, sizeof(*sorted));

	if (!ends || !seen || !sorted)
		return -ENOMEM;
	array_foreach (&graph->deps, dep)
		ends[dep->from + 1]++;
	for (size_t i = 1; i <= count; i++)
		ends[i] += ends[i - 1];
	array_foreach (&graph->deps, dep)
		sorted[ends[dep->from]++] = *dep;
	for (uint32_t i = 0, at = 0; i < count; i++) {
		struct chakra_node *node = &graph->nodes.items[i];

		node->first_dep = (uint32_t)kept;
		for (; at < ends[i]; at++) {
			bool is_call = sorted[at].kind == CHAKRA_DEP_CALL;

			if (!is_call && seen[sorted[at].on] == i + 1)
				continue;
			if (!is_call)
				seen[sorted[at].on] = i + 1;
			graph->deps.items[kept++] = sorted[at];
		}
		node->dep_count = (uint32_t)kept - node->first_dep;
	}
	graph->deps.count = kept;
	return 0;
}

void chakra_graph_done(struct chakra_graph *graph)
{
	array_done(&graph->nodes);
	array_done(&graph->deps);
	array_done(&graph->collectives);
	chakra_groups_done(&graph->groups);
	free(graph->parents);
	free(graph->positions);
	free(graph->first_child);
	free(graph->children);
}

struct chakra_graph *chakra_graph_free(struct chakra_graph *graph)
{
	if (graph)
		chakra_graph_done(graph);
	free(graph);
	return NULL;
}

void chakra_graph_freep(struct chakra_graph **graph)
{
	chakra_graph_free(*graph);
}
