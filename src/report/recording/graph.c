/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA graphs, as the report shows them. */
#include <errno.h>

#include "analyses/device/graphs.h"
#include "model/format.h"
#include "report/view.h"

/* "train.py:18", or the function where lines are not known. */
static void add_place(struct table *table, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = index == MODEL_NONE ? NULL : &model->frames.items[index];
	_cleanup_strbuf_ struct strbuf name = {0};

	if (!frame) {
		table_cell(table, "");
		return;
	}
	if (frame->line)
		strbuf_addf(&name, "%s:%u ", frame->source_file, frame->line);
	model_frame_name(model, index, &name);
	table_cell(table, strbuf_cstr(&name));
}

static void add_graph(const struct report_view *view, struct table *table,
	const struct device_graph *graph, uint64_t total_ns)
{
	table_cellf(
		table, "%.2f %%", total_ns ? 100.0 * (double)graph->work_ns / (double)total_ns : 0);
	table_duration(table, graph->work_ns);
	table_count(table, graph->replays);
	if (graph->replays)
		table_duration(table, graph->span_ns / graph->replays);
	else
		table_cell(table, "");
	table_count(table, graph->node_count ? graph->node_count : graph->captured_nodes);
	if (graph->has_capture) {
		table_duration(table, graph->capture_ns);
		table_bytes(table, graph->capture_bytes);
	} else {
		table_cell(table, "not seen");
		table_cell(table, "");
	}
	table_cellf(table, "%u", graph->id);
	add_place(table, view->model, graph->capture_frame);
	add_place(table, view->model, graph->replay_frame);
}

static int add_graphs(
	const struct report_view *view, const struct device_graphs *graphs, size_t limit)
{
	struct table_column columns[] = {
		{.title = "Time", .right = true},
		{.title = "Total", .right = true},
		{.title = "Replays", .right = true},
		{.title = "Each", .right = true},
		{.title = "Nodes", .right = true},
		{.title = "Capture", .right = true},
		{.title = "Memory", .right = true},
		{.title = "Graph", .right = true},
		{.title = "Captured by", .is_path = true, .shrinks_to = 14},
		{.title = "Replayed by", .is_path = true, .shrinks_to = 14},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	uint64_t total_ns = 0;

	report_heading(view, "CUDA graphs");
	array_foreach (&graphs->graphs, graph)
		total_ns += graph->work_ns;
	for (size_t i = 0; i < MIN(limit, graphs->graphs.count); i++)
		add_graph(view, &table, &graphs->graphs.items[i], total_ns);
	return table_print(&table, &view->terminal, view->out);
}

static void add_node(const struct report_view *view, struct table *table,
	const struct device_graphs *graphs, const struct device_graph_node *node)
{
	const struct device_graph *graph = &graphs->graphs.items[node->graph];

	if (node->count) {
		table_cellf(table, "%.2f %%",
			graph->work_ns ? 100.0 * (double)node->total_ns / (double)graph->work_ns
				       : 0);
		table_duration(table, node->total_ns);
		table_count(table, node->count);
		table_duration(table, node->total_ns / node->count);
	} else {
		for (unsigned i = 0; i < 4; i++)
			table_cell(table, "");
	}
	table_cellf(table, "%u", graph->id);
	table_cell(table, node->name);
	add_place(table, view->model, node->frame);
}

static int add_nodes(
	const struct report_view *view, const struct device_graphs *graphs, size_t limit)
{
	struct table_column columns[] = {
		{.title = "Of graph", .right = true},
		{.title = "Total", .right = true},
		{.title = "Count", .right = true},
		{.title = "Mean", .right = true},
		{.title = "Graph", .right = true},
		{.title = "Node", .shrinks_to = 12},
		{.title = "Captured by", .is_path = true, .shrinks_to = 14},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};

	if (!graphs->nodes.count)
		return 0;
	report_heading(view, "Nodes of these graphs");
	for (size_t i = 0; i < MIN(limit, graphs->nodes.count); i++)
		add_node(view, &table, graphs, &graphs->nodes.items[i]);
	return table_print(&table, &view->terminal, view->out);
}

int report_graphs(const struct report_view *view, size_t limit)
{
	_cleanup_device_graphs_ struct device_graphs graphs = {0};
	int r = device_graphs_init(&graphs, view->model);

	if (r < 0)
		return r;
	if (!graphs.graphs.count) {
		report_paragraph(
			view, "No CUDA graph was made or launched while it was recorded.", 0);
		return 0;
	}
	r = add_graphs(view, &graphs, limit ? limit : graphs.graphs.count);
	array_foreach (&graphs.graphs, graph) {
		if (!graph->is_whole)
			continue;
		report_paragraph(view,
			"Launches were timed as a whole (--graph graph): their nodes have no "
			"times.",
			2);
		break;
	}
	return r ?: add_nodes(view, &graphs, limit ? limit : graphs.nodes.count);
}
