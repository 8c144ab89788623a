/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/chakra_graph.h"

#include <errno.h>
#include <inttypes.h>

#include "base/map.h"
#include "base/output_file.h"
#include "chakra/et_file.h"
#include "exporters/escape.h"

#define NOT_NEAR UINT64_MAX

struct edge {
	uint64_t from, to;
};

struct graph {
	const struct chakra_graph_options *options;
	struct chakra_graph_result *result;
	struct map_u64 distances; /* id of a node → hops from the one in the middle */
	ARRAY_OF(struct edge) edges;
	struct output_file file;
};

/* ---- which nodes ---- */

static int add_edges(struct graph *graph, const et_node *node, const uint64_t *deps, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (array_append(&graph->edges, (struct edge){deps[i], node->id}) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int find_nodes(struct graph *graph, const char *input, struct errmsg *err)
{
	_cleanup_et_reader_ struct et_reader *reader = NULL;
	const et_node *node;
	int r = et_reader_open(&reader, input, err);

	while (r >= 0 && (r = et_reader_next(reader, &node, err)) == 1) {
		if (map_u64_set(&graph->distances, node->id, NOT_NEAR) < 0 ||
			add_edges(graph, node, node->data_deps, node->n_data_deps) < 0 ||
			add_edges(graph, node, node->ctrl_deps, node->n_ctrl_deps) < 0)
			return errmsg_set(err, -ENOMEM, "memory ran out");
	}
	return r;
}

static uint64_t distance_of(const struct graph *graph, uint64_t node)
{
	uint64_t distance = NOT_NEAR;

	map_u64_get(&graph->distances, node, &distance);
	return distance;
}

/* One that is not known yet is a hop farther than its neighbour. */
static bool reach(struct graph *graph, uint64_t from, uint64_t to, uint64_t hop)
{
	return distance_of(graph, from) == hop && distance_of(graph, to) == NOT_NEAR &&
	       map_u64_get(&graph->distances, to, NULL) &&
	       map_u64_set(&graph->distances, to, hop + 1) == 0;
}

/* Those that are near; the node in the middle is there. */
static void find_near(struct graph *graph)
{
	bool is_larger = true;

	map_u64_set(&graph->distances, graph->options->around, 0);
	for (unsigned hop = 0; is_larger && hop < graph->options->hops; hop++) {
		is_larger = false;
		array_foreach (&graph->edges, edge) {
			is_larger |= reach(graph, edge->from, edge->to, hop);
			is_larger |= reach(graph, edge->to, edge->from, hop);
		}
	}
}

static bool is_shown(const struct graph *graph, uint64_t node)
{
	return graph->options->has_around ? distance_of(graph, node) != NOT_NEAR
					  : map_u64_get(&graph->distances, node, NULL);
}

/* ---- Graphviz's language ---- */

/* Within quotes. */
static void add_dot_text(struct strbuf *out, const char *text)
{
	_cleanup_strbuf_ struct strbuf plain = {0};

	escape_plain(&plain, text);
	for (const char *at = strbuf_cstr(&plain); *at; at++) {
		if (*at == '"' || *at == '\\')
			strbuf_add_char(out, '\\');
		strbuf_add_char(out, *at);
	}
	strbuf_inherit_status(out, &plain);
}

static void add_type(struct strbuf *out, const et_node *node)
{
	const char *name = et_node_type_to_string(node->type);

	if (name)
		strbuf_add(out, name);
	else
		strbuf_addf(out, "type %d", (int)node->type);
}

static void add_dot_node(struct strbuf *out, const et_node *node)
{
	static const char *const colors[] = {
		[CHAKRA_PROTO_MSG__NODE_TYPE__MEM_LOAD_NODE] = "khaki",
		[CHAKRA_PROTO_MSG__NODE_TYPE__MEM_STORE_NODE] = "khaki",
		[CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE] = "lightblue",
		[CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE] = "salmon",
		[CHAKRA_PROTO_MSG__NODE_TYPE__COMM_RECV_NODE] = "salmon",
		[CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE] = "salmon",
	};
	const char *color = (size_t)node->type < ARRAY_SIZE(colors) ? colors[node->type] : NULL;

	strbuf_addf(out, "  \"%" PRIu64 "\" [label=\"", node->id);
	add_dot_text(out, node->name);
	strbuf_addf(out, "\\n%" PRIu64 " ", node->id);
	add_type(out, node);
	if (node->duration_micros)
		strbuf_addf(out, ", %" PRIu64 " us", node->duration_micros);
	strbuf_addf(out, "\", fillcolor=%s]\n", color ?: "white");
}

static void add_dot_edge(struct strbuf *out, uint64_t from, uint64_t to, bool is_control)
{
	strbuf_addf(out, "  \"%" PRIu64 "\" -> \"%" PRIu64 "\"%s\n", from, to,
		is_control ? " [arrowhead=tee, style=dashed]" : "");
}

/* ---- GraphML ---- */

static void add_data(struct strbuf *out, const char *key, const char *text)
{
	strbuf_addf(out, "<data key=\"%s\">", key);
	escape_xml(out, text);
	strbuf_add(out, "</data>");
}

static void add_graphml_node(struct strbuf *out, const et_node *node)
{
	_cleanup_strbuf_ struct strbuf type = {0};

	add_type(&type, node);
	strbuf_addf(out, "  <node id=\"%" PRIu64 "\">", node->id);
	add_data(out, "label", node->name);
	add_data(out, "type", strbuf_cstr(&type));
	strbuf_addf(out, "<data key=\"duration_us\">%" PRIu64 "</data></node>\n",
		node->duration_micros);
}

static void add_graphml_edge(struct strbuf *out, uint64_t from, uint64_t to, bool is_control)
{
	strbuf_addf(out, "  <edge source=\"%" PRIu64 "\" target=\"%" PRIu64 "\">", from, to);
	add_data(out, "dependency", is_control ? "control" : "data");
	strbuf_add(out, "</edge>\n");
}

/* ---- both ---- */

static const struct {
	const char *begin, *end;
	void (*add_node)(struct strbuf *out, const et_node *node);
	void (*add_edge)(struct strbuf *out, uint64_t from, uint64_t to, bool is_control);
} formats[] = {
	[CHAKRA_GRAPH_DOT] = {"digraph trace {\n  node [shape=box, style=filled]\n", "}\n",
		add_dot_node, add_dot_edge},
	[CHAKRA_GRAPH_GRAPHML] =
		{"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		 "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
		 "<key id=\"label\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n"
		 "<key id=\"type\" for=\"node\" attr.name=\"type\" attr.type=\"string\"/>\n"
		 "<key id=\"duration_us\" for=\"node\" attr.name=\"duration_us\" "
		 "attr.type=\"long\"/>\n"
		 "<key id=\"dependency\" for=\"edge\" attr.name=\"dependency\" "
		 "attr.type=\"string\"/>\n"
		 "<graph edgedefault=\"directed\">\n",
			"</graph>\n</graphml>\n", add_graphml_node, add_graphml_edge},
};

static void write_edges(
	struct graph *graph, uint64_t node, const uint64_t *deps, size_t count, bool is_control)
{
	for (size_t i = 0; i < count; i++) {
		if (is_shown(graph, deps[i])) {
			formats[graph->options->format].add_edge(
				&graph->file.out, deps[i], node, is_control);
			graph->result->edges++;
		} else if (!map_u64_get(&graph->distances, deps[i], NULL)) {
			graph->result->missing++;
		}
	}
}

static int write_nodes(struct graph *graph, const char *input, struct errmsg *err)
{
	_cleanup_et_reader_ struct et_reader *reader = NULL;
	const et_node *node;
	int r = et_reader_open(&reader, input, err);

	while (r >= 0 && (r = et_reader_next(reader, &node, err)) == 1) {
		if (!is_shown(graph, node->id))
			continue;
		formats[graph->options->format].add_node(&graph->file.out, node);
		write_edges(graph, node->id, node->data_deps, node->n_data_deps, false);
		write_edges(graph, node->id, node->ctrl_deps, node->n_ctrl_deps, true);
		output_file_keep_small(&graph->file);
		graph->result->nodes++;
	}
	return r;
}

static int write_graph(
	struct graph *graph, const char *input, const char *output, struct errmsg *err)
{
	int r = find_nodes(graph, input, err);

	if (r < 0)
		return r;
	if (graph->options->has_around) {
		if (!map_u64_get(&graph->distances, graph->options->around, NULL))
			return errmsg_set(err, -ENOENT,
				"there is no node %" PRIu64 " in %s: `sonde chakra dump` lists all",
				graph->options->around, input);
		find_near(graph);
	}
	r = output_file_open(&graph->file, output, err);
	if (r < 0)
		return r;
	strbuf_add(&graph->file.out, formats[graph->options->format].begin);
	r = write_nodes(graph, input, err);
	if (r < 0)
		return r;
	strbuf_add(&graph->file.out, formats[graph->options->format].end);
	return output_file_close(&graph->file, err);
}

int chakra_graph_write(const char *input, const char *output,
	const struct chakra_graph_options *options, struct chakra_graph_result *ret_result,
	struct errmsg *err)
{
	struct graph graph = {.options = options, .result = ret_result, .file.fd = -1};
	int r;

	*ret_result = (struct chakra_graph_result){0};
	r = write_graph(&graph, input, output, err);
	output_file_done(&graph.file);
	map_u64_done(&graph.distances);
	array_done(&graph.edges);
	return r;
}
