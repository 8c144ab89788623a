/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/convert/convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "model/trace.h"

#define TYPE(name) CHAKRA_PROTO_MSG__NODE_TYPE__##name

struct converter {
	const struct execution_trace *trace;
	struct chakra_convert_options options;
	struct chakra_graph *graph;
	struct chakra_convert_result *result;
};

static bool is_process_root(const struct execution_node *node)
{
	return execution_text_equals(node->name, "[pytorch|profiler|execution_trace|process]") ||
	       execution_text_equals(node->name, "[pytorch|profiler|execution_graph|process]");
}

/* Nodes. */

struct numbered {
	uint64_t id;
	uint32_t index;
};

static int compare_ids(const void *a_item, const void *b_item)
{
	const struct numbered *a = a_item, *b = b_item;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

/* The root of the process is no work and nothing waits for it: it stays out, with the dependencies
 * on it. */
static int add_nodes(struct converter *converter)
{
	const struct execution_trace *trace = converter->trace;
	struct chakra_graph *graph = converter->graph;
	size_t count = trace->nodes.count;
	_cleanup_free_ struct numbered *sorted = malloc((count + 1) * sizeof(*sorted));
	bool is_sorted = true; /* as linked traces are */
	int r = 0;

	graph->positions = malloc((count + 1) * sizeof(*graph->positions));
	if (!sorted || !graph->positions || array_reserve(&graph->nodes, count) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		sorted[i] = (struct numbered){trace->nodes.items[i].id, i};
		is_sorted &= i == 0 || sorted[i - 1].id <= sorted[i].id;
	}
	if (!is_sorted)
		qsort(sorted, count, sizeof(*sorted), compare_ids);
	for (size_t i = 0; r == 0 && i < count; i++) {
		uint32_t source = sorted[i].index;

		graph->positions[source] = MODEL_NONE;
		if (i > 0 && sorted[i].id == sorted[i - 1].id) {
			converter->result->repeated_ids++;
			continue;
		}
		if (!graph->definition->has_process_root &&
			is_process_root(&trace->nodes.items[source]))
			continue;
		graph->positions[source] = (uint32_t)graph->nodes.count;
		r = array_append(&graph->nodes, (struct chakra_node){.source = source,
							.collective = MODEL_NONE,
							.type = TYPE(COMP_NODE)});
	}
	return r;
}

/* Who called whom. */

/* Thread id → root of the thread. */
static int find_thread_roots(const struct chakra_graph *graph, struct map_u64 *roots)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < graph->nodes.count; i++) {
		const struct execution_node *node = chakra_source(graph, i);

		if (chakra_is_thread_root(node) && !map_u64_get(roots, node->tid, NULL))
			r = map_u64_set(roots, node->tid, i);
	}
	return r;
}

/* A trace that was stopped early lacks callers: what they called goes below its thread's root. */
static uint32_t adopt(struct converter *converter, uint32_t node, const struct map_u64 *roots)
{
	const struct execution_node *source = chakra_source(converter->graph, node);
	const struct execution_node *parent =
		execution_trace_find(converter->trace, source->parent);
	uint64_t root;

	if (converter->graph->definition->leaves_orphans || chakra_is_thread_root(source) ||
		source->parent == EXECUTION_NO_ID || source->parent == source->id ||
		(parent && is_process_root(parent)))
		return MODEL_NONE;
	converter->result->missing_deps++;
	if (source->work == MODEL_NONE && map_u64_get(roots, source->tid, &root) && root != node)
		return (uint32_t)root;
	return MODEL_NONE;
}

static int find_parents(struct converter *converter)
{
	struct chakra_graph *graph = converter->graph;
	_cleanup_(map_u64_done) struct map_u64 roots = {0};
	size_t count = graph->nodes.count;
	int r = find_thread_roots(graph, &roots);

	graph->parents = malloc((count + 1) * sizeof(*graph->parents));
	graph->first_child = calloc(count + 2, sizeof(*graph->first_child));
	graph->children = malloc((count + 1) * sizeof(*graph->children));
	if (r < 0 || !graph->parents || !graph->first_child || !graph->children)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct execution_node *node = chakra_source(graph, i);
		uint32_t parent = chakra_graph_find(graph, node->parent);

		if (parent == i)
			parent = MODEL_NONE;
		graph->parents[i] = parent != MODEL_NONE ? parent : adopt(converter, i, &roots);
		if (graph->parents[i] != MODEL_NONE)
			graph->first_child[graph->parents[i] + 2]++;
	}
	for (size_t i = 2; i < count + 2; i++)
		graph->first_child[i] += graph->first_child[i - 1];
	for (uint32_t i = 0; i < count; i++) {
		if (graph->parents[i] != MODEL_NONE)
			graph->children[graph->first_child[graph->parents[i] + 1]++] = i;
	}
	return 0;
}

static int add_calls(struct chakra_graph *graph)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < graph->nodes.count; i++) {
		if (graph->parents[i] != MODEL_NONE)
			r = chakra_graph_add(graph, i, graph->parents[i], CHAKRA_DEP_CALL);
	}
	return r;
}

/* Types. */

static uint8_t type_of_copy(const struct converter *converter, const struct execution_node *node)
{
	const struct execution_work *work = &converter->trace->works.items[node->work];

	if (converter->options.no_memory_nodes ||
		!execution_text_equals(work->category, "gpu_memcpy"))
		return TYPE(COMP_NODE);
	if (execution_text_contains(node->name, "HtoD") ||
		execution_text_contains(node->name, "HostToDevice"))
		return TYPE(MEM_LOAD_NODE);
	if (execution_text_contains(node->name, "DtoH") ||
		execution_text_contains(node->name, "DeviceToHost"))
		return TYPE(MEM_STORE_NODE);
	return TYPE(COMP_NODE);
}

static uint8_t type_of_collective(int8_t kind)
{
	switch (kind) {
	case COLLECTIVE_SEND:
		return TYPE(COMM_SEND_NODE);
	case COLLECTIVE_RECEIVE:
		return TYPE(COMM_RECV_NODE);
	default:
		return TYPE(COMM_COLL_NODE);
	}
}

/* Where devices communicate, their work stands for it; else, as with gloo, the host's operators. */
static bool devices_communicate(const struct chakra_graph *graph)
{
	for (uint32_t i = 0; i < graph->nodes.count; i++) {
		const struct execution_node *node = chakra_source(graph, i);

		if (node->work != MODEL_NONE && chakra_is_communication(node->name))
			return true;
	}
	return false;
}

static bool find_collective(const struct chakra_graph *graph, const struct execution_node *node,
	bool of_host, struct chakra_collective *ret_collective)
{
	if (node->work == MODEL_NONE && !of_host)
		return false;
	return chakra_collective_of(graph->trace, &graph->groups, node, ret_collective);
}

static int set_collective(
	struct converter *converter, struct chakra_node *node, struct chakra_collective *collective)
{
	struct chakra_graph *graph = converter->graph;
	bool is_send = collective->kind == COLLECTIVE_SEND;
	bool is_receive = collective->kind == COLLECTIVE_RECEIVE;

	if (collective->kind == COLLECTIVE_NONE) {
		converter->result->unknown_collectives++;
		return 0;
	}
	if (converter->options.has_rank && is_send && collective->source == TRACE_NO_NUMBER)
		collective->source = converter->options.rank;
	if (converter->options.has_rank && is_receive && collective->destination == TRACE_NO_NUMBER)
		collective->destination = converter->options.rank;
	converter->result->without_bytes += !collective->has_bytes;
	converter->result->without_peer +=
		(is_send && collective->destination == TRACE_NO_NUMBER) ||
		(is_receive && collective->source == TRACE_NO_NUMBER);
	node->type = type_of_collective(collective->kind);
	node->collective = (uint32_t)graph->collectives.count;
	return array_append(&graph->collectives, *collective);
}

static int set_types(struct converter *converter)
{
	struct chakra_graph *graph = converter->graph;
	bool of_host = !devices_communicate(graph);
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < graph->nodes.count; i++) {
		struct chakra_node *node = &graph->nodes.items[i];
		const struct execution_node *source = chakra_source(graph, i);
		struct chakra_collective collective;

		if (node->is_removed)
			continue;
		if (execution_text_contains(source->name, "process_group:init"))
			node->type = TYPE(METADATA_NODE);
		else if (graph->definition->find_collective(graph, source, of_host, &collective))
			r = set_collective(converter, node, &collective);
		else if (source->work != MODEL_NONE && !graph->definition->has_no_copies)
			node->type = type_of_copy(converter, source);
	}
	return r;
}

/* The arithmetic of an operator is that of the longest kernel that it launched. */
static void set_main_work(struct chakra_graph *graph)
{
	for (uint32_t i = 0; i < graph->nodes.count; i++) {
		struct chakra_node *longest = NULL;
		int64_t longest_ns = INT64_MIN;

		for (uint32_t c = graph->first_child[i]; c < graph->first_child[i + 1]; c++) {
			const struct execution_node *child =
				chakra_source(graph, graph->children[c]);

			if (child->work == MODEL_NONE || child->inclusive_ns <= longest_ns)
				continue;
			longest = &graph->nodes.items[graph->children[c]];
			longest_ns = child->inclusive_ns;
		}
		if (longest)
			longest->is_main = true;
	}
}

static void count_all(struct converter *converter)
{
	struct chakra_graph *graph = converter->graph;
	struct chakra_convert_result *result = converter->result;

	for (uint32_t i = 0; i < graph->nodes.count; i++) {
		const struct chakra_node *node = &graph->nodes.items[i];
		const struct execution_node *source = chakra_source(graph, i);

		if (node->is_removed)
			continue;
		result->nodes++;
		result->types[node->type]++;
		result->host_nodes += source->work == MODEL_NONE;
		result->device_nodes += source->work != MODEL_NONE;
		result->without_time +=
			source->start_ns == TRACE_NO_NUMBER && !chakra_is_thread_root(source);
		for (uint32_t d = 0; d < node->dep_count; d++)
			result->deps[graph->deps.items[node->first_dep + d].kind]++;
	}
}

static int find_order(struct chakra_graph *graph, struct chakra_thread_result *ret_result)
{
	int r = add_calls(graph);

	r = r ?: chakra_order_threads(graph, ret_result);
	return r ?: chakra_order_streams(graph);
}

/* Whole microseconds. */
static uint64_t duration_us(const struct execution_node *node)
{
	return ((uint64_t)node->exclusive_ns + NS_PER_US / 2) / NS_PER_US;
}

static const struct chakra_definition own_definition = {
	.order = find_order, .find_collective = find_collective, .duration_us = duration_us};

static int order(struct converter *converter)
{
	struct chakra_thread_result result = {0};
	int r = converter->graph->definition->order(converter->graph, &result);

	converter->result->missing_deps += result.missing;
	converter->result->late_deps += result.late;
	converter->result->removed = result.removed;
	return r ?: chakra_graph_sort(converter->graph);
}

static int look_for_cycles(struct converter *converter, struct errmsg *err)
{
	struct chakra_cycles cycles = {0};
	int r = chakra_find_cycles(converter->graph, converter->options.break_cycles, &cycles);

	converter->result->cycles = cycles.count;
	converter->result->cut_deps = cycles.cut;
	if (r == 0 && cycles.count > 0 && !converter->options.break_cycles)
		r = errmsg_set(err, -ELOOP,
			"%llu nodes of %s wait for themselves, such as %s: no simulator can run "
			"them; --break-cycles removes the dependencies on nodes that began later",
			(unsigned long long)cycles.nodes, converter->trace->path,
			strbuf_cstr(&cycles.path));
	strbuf_done(&cycles.path);
	return r;
}

static int make_graph(struct converter *converter, struct errmsg *err)
{
	int r = chakra_groups_read(&converter->graph->groups, converter->trace);

	r = r ?: add_nodes(converter);
	if (r == 0 && converter->graph->nodes.count == 0)
		return errmsg_set(err, -ENODATA,
			"%s has no nodes: there is nothing to convert; is it an execution trace?",
			converter->trace->path);
	r = r ?: find_parents(converter);
	r = r ?: order(converter);
	r = r ?: set_types(converter);
	r = r ?: look_for_cycles(converter, err);
	if (r == 0) {
		set_main_work(converter->graph);
		count_all(converter);
	}
	return r;
}

int chakra_convert(struct chakra_graph **ret_graph, const struct execution_trace *linked,
	const struct chakra_convert_options *options, struct chakra_convert_result *ret_result,
	struct errmsg *err)
{
	_cleanup_chakra_graph_ struct chakra_graph *graph = calloc(1, sizeof(*graph));
	struct chakra_convert_result result = {0};
	struct converter converter = {.trace = linked, .graph = graph, .result = &result};
	int r = graph ? 0 : -ENOMEM;

	if (options)
		converter.options = *options;
	if (graph) {
		graph->trace = linked;
		graph->definition = converter.options.definition ?: &own_definition;
	}
	r = r ?: make_graph(&converter, err);
	if (r == -ENOMEM)
		return errmsg_set(err, r, "memory ran out while converting %s", linked->path);
	if (r < 0)
		return r;
	*ret_result = result;
	*ret_graph = TAKE_PTR(graph);
	return 0;
}

int chakra_convert_to_file(const struct execution_trace *linked, const char *path,
	const struct chakra_convert_options *options, struct chakra_convert_result *ret_result,
	struct errmsg *err)
{
	_cleanup_chakra_graph_ struct chakra_graph *graph = NULL;
	_cleanup_et_writer_ struct et_writer *writer = NULL;
	struct chakra_convert_result result;
	int r = chakra_convert(&graph, linked, options, &result, err);

	r = r ?: et_writer_open(&writer, path, err);
	if (r < 0)
		return r;
	r = chakra_write(graph, options, writer);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while writing %s", path);
	r = et_writer_close(TAKE_PTR(writer), &result.bytes, err);
	if (r == 0)
		*ret_result = result;
	return r;
}
