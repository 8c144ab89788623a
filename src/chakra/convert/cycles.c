/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for itself in a graph: found, reported, and cut where that is wanted. */
#include <errno.h>
#include <stdlib.h>

#include "chakra/convert/components.h"
#include "chakra/convert/graph.h"
#include "model/trace.h"

#define MAX_PATH_NODES 12 /* in the text */

/* The graph in the form that components want. */
struct form {
	struct waits waits;
	uint32_t *first, *on;
};

static int form_init(struct form *form, const struct chakra_graph *graph)
{
	form->first = malloc((graph->nodes.count + 1) * sizeof(*form->first));
	form->on = malloc((graph->deps.count + 1) * sizeof(*form->on));
	if (!form->first || !form->on)
		return -ENOMEM;
	for (size_t i = 0; i < graph->nodes.count; i++)
		form->first[i] = graph->nodes.items[i].first_dep;
	form->first[graph->nodes.count] = (uint32_t)graph->deps.count;
	for (size_t i = 0; i < graph->deps.count; i++)
		form->on[i] = graph->deps.items[i].on;
	form->waits = (struct waits){(uint32_t)graph->nodes.count, form->first, form->on};
	return 0;
}

static void form_done(struct form *form)
{
	free(form->first);
	free(form->on);
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

static int tell_path(const struct chakra_graph *graph, const struct form *form,
	const struct components *components, uint32_t node, struct strbuf *path)
{
	struct node_list cycle = {0};
	int r = components_cycle(&form->waits, components, node, &cycle);

	for (size_t i = 0; r == 0 && i < MIN(cycle.nodes.count, (size_t)MAX_PATH_NODES); i++) {
		const struct execution_node *source = chakra_source(graph, cycle.nodes.items[i]);

		strbuf_addf(path, "%llu %.*s -> ", (unsigned long long)source->id,
			(int)MIN(source->name.length, 40U), source->name.bytes);
	}
	if (cycle.nodes.count > MAX_PATH_NODES)
		strbuf_addf(path, "%zu more -> ", cycle.nodes.count - MAX_PATH_NODES);
	if (r == 0)
		strbuf_addf(path, "%llu",
			(unsigned long long)chakra_source(graph, cycle.nodes.items[0])->id);
	array_done(&cycle.nodes);
	return r ?: strbuf_status(path);
}

/* Counts the groups; tells the path of the first. */
static int count_cycles(const struct chakra_graph *graph, const struct form *form,
	const struct components *components, struct chakra_cycles *cycles)
{
	int r = 0;

	for (uint32_t i = 0; i < components->count; i++) {
		cycles->count += components->sizes[i] > 1;
		cycles->nodes += components->sizes[i] > 1 ? components->sizes[i] : 0;
	}
	for (uint32_t i = 0; r == 0 && i < graph->nodes.count && cycles->path.length == 0; i++) {
		if (components->sizes[components->of[i]] > 1)
			r = tell_path(graph, form, components, i, &cycles->path);
	}
	return r;
}

static int cut_back(struct chakra_graph *graph, const struct components *components, uint64_t *cut)
{
	_cleanup_free_ int64_t *times = times_of(graph);
	size_t kept = 0;

	if (!times)
		return -ENOMEM;
	array_foreach (&graph->deps, dep) {
		bool is_inside = components->of[dep->from] == components->of[dep->on];
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
	_cleanup_components_ struct components components = {0};
	_cleanup_(form_done) struct form form = {0};
	int r = form_init(&form, graph);

	r = r ?: components_find(&form.waits, &components);
	r = r ?: count_cycles(graph, &form, &components, ret_cycles);
	if (r == 0 && cut && ret_cycles->count > 0)
		r = cut_back(graph, &components, &ret_cycles->cut);
	return r;
}
