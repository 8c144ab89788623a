/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/chakra_graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/output_file.h"
#include "chakra/et/table.h"

struct graph {
	const struct chakra_graph_options *options;
	struct chakra_graph_result *result;
	const struct et_table *table;
	bool *is_near; /* row: is it shown? NULL: all are */
	struct output_file file;
};

/* ---- which nodes ---- */

static bool is_shown(const struct graph *graph, uint64_t id)
{
	uint64_t row;

	return map_u64_get(&graph->table->index, id, &row) &&
	       (!graph->is_near || graph->is_near[row]);
}

/* A hop farther: what the rows that are near wait for, and what waits for them. */
static bool add_neighbours(const struct et_table *table, const bool *before, bool *is_near)
{
	bool is_larger = false;

	for (size_t i = 0; i < table->rows.count; i++) {
		const struct et_row *row = &table->rows.items[i];
		uint64_t dep;

		for (uint32_t d = 0; d < row->ctrl_deps + row->data_deps; d++) {
			if (!map_u64_get(
				    &table->index, table->deps.items[row->first_dep + d], &dep) ||
				before[i] == before[dep])
				continue;
			is_larger = is_near[i] = is_near[dep] = true;
		}
	}
	return is_larger;
}

static int find_near(struct graph *graph, struct errmsg *err)
{
	const struct et_table *table = graph->table;
	_cleanup_free_ bool *before = calloc(table->rows.count + 1, sizeof(*before));
	bool is_larger = true;
	uint64_t middle;

	graph->is_near = calloc(table->rows.count + 1, sizeof(*graph->is_near));
	if (!graph->is_near || !before)
		return errmsg_set(err, -ENOMEM, "memory ran out");
	if (!map_u64_get(&table->index, graph->options->around, &middle))
		return errmsg_set(err, -ENOENT,
			"there is no node %" PRIu64 " in %s: `sonde chakra dump` lists all",
			graph->options->around, table->path);
	graph->is_near[middle] = true;
	for (unsigned hop = 0; is_larger && hop < graph->options->hops; hop++) {
		memcpy(before, graph->is_near, table->rows.count * sizeof(*before));
		is_larger = add_neighbours(table, before, graph->is_near);
	}
	return 0;
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

static void add_type(struct strbuf *out, const struct et_row *node)
{
	const char *name = et_node_type_to_string(node->type);

	if (name)
		strbuf_add(out, name);
	else
		strbuf_addf(out, "type %d", node->type);
}

static void add_dot_node(struct strbuf *out, const struct et_row *node, const char *name)
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
	add_dot_text(out, name);
	strbuf_addf(out, "\\n%" PRIu64 " ", node->id);
	add_type(out, node);
	if (node->duration_us)
		strbuf_addf(out, ", %" PRIu64 " us", node->duration_us);
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

static void add_graphml_node(struct strbuf *out, const struct et_row *node, const char *name)
{
	_cleanup_strbuf_ struct strbuf type = {0};

	add_type(&type, node);
	strbuf_addf(out, "  <node id=\"%" PRIu64 "\">", node->id);
	add_data(out, "label", name);
	add_data(out, "type", strbuf_cstr(&type));
	strbuf_addf(
		out, "<data key=\"duration_us\">%" PRIu64 "</data></node>\n", node->duration_us);
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
	void (*add_node)(struct strbuf *out, const struct et_row *node, const char *name);
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

static void write_edges(struct graph *graph, const struct et_row *row)
{
	for (uint32_t i = 0; i < row->ctrl_deps + row->data_deps; i++) {
		uint64_t dep = graph->table->deps.items[row->first_dep + i];

		if (is_shown(graph, dep)) {
			formats[graph->options->format].add_edge(
				&graph->file.out, dep, row->id, i < row->ctrl_deps);
			graph->result->edges++;
		} else if (!map_u64_get(&graph->table->index, dep, NULL)) {
			graph->result->missing++;
		}
	}
}

static int write_graph(struct graph *graph, const char *output, struct errmsg *err)
{
	int r = graph->options->has_around ? find_near(graph, err) : 0;

	r = r ?: output_file_open(&graph->file, output, err);
	if (r < 0)
		return r;
	strbuf_add(&graph->file.out, formats[graph->options->format].begin);
	array_foreach (&graph->table->rows, row) {
		if (!is_shown(graph, row->id))
			continue;
		formats[graph->options->format].add_node(
			&graph->file.out, row, et_table_text(graph->table, row->name));
		write_edges(graph, row);
		output_file_keep_small(&graph->file);
		graph->result->nodes++;
	}
	strbuf_add(&graph->file.out, formats[graph->options->format].end);
	return output_file_close(&graph->file, err);
}

int chakra_graph_write(const char *input, const char *output,
	const struct chakra_graph_options *options, struct chakra_graph_result *ret_result,
	struct errmsg *err)
{
	_cleanup_et_table_ struct et_table *table = NULL;
	struct graph graph = {.options = options, .result = ret_result};
	int r = et_table_read(&table, input, NULL, NULL, err);

	*ret_result = (struct chakra_graph_result){0};
	if (r < 0)
		return r;
	graph.table = table;
	r = write_graph(&graph, output, err);
	output_file_done(&graph.file);
	free(graph.is_near);
	return r;
}
