/* SPDX-License-Identifier: Apache-2.0 */
/* Section: CUDA graphs, how each was captured and replayed, and what its nodes took. */
#include "analyses/device/graphs.h"

#include <errno.h>

#include "base/text.h"
#include "model/format.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"
#include "report/view.h"

static const struct report_column place_columns[] = {
	{.key = "function", .kind = REPORT_TEXT},
	{.key = "module", .kind = REPORT_TEXT},
	{.key = "source_file", .kind = REPORT_TEXT},
	{.key = "line", .kind = REPORT_INTEGER},
};
static const struct report_shape place_shape = REPORT_SHAPE(place_columns);

/* A place as a cell, "train.py:18 step", and as an object. */
#define PLACE_COLUMNS(name, name_title)                                                            \
	{.title = (name_title),                                                                    \
		.kind = REPORT_TEXT,                                                               \
		.hide = REPORT_HIDE_UNKNOWN,                                                       \
		.is_path = true,                                                                   \
		.shrinks_to = 14},                                                                 \
	{                                                                                          \
		.key = (name), .kind = REPORT_OBJECT, .shape = &place_shape                        \
	}

static void add_place(struct result *result, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = index == MODEL_NONE ? NULL : &model->frames.items[index];
	_cleanup_strbuf_ struct strbuf name = {0};

	if (!frame) {
		result_null(result);
		result_null(result);
		return;
	}
	if (frame->line)
		strbuf_addf(&name, "%s:%u ", frame->source_file, frame->line);
	model_frame_name(model, index, &name);
	result_text(result, strbuf_cstr(&name));
	strbuf_inherit_status(&result->texts, &name);
	result_open(result);
	result_text(result, model_function_name(model, frame->function));
	result_text(result, model_function_module(model, frame->function));
	result_text(result, frame->source_file);
	result_known(result, frame->line != 0, frame->line);
	result_close(result);
}

/* ---- nodes ---- */

static const struct report_column node_columns[] = {
	{.title = "Of graph",
		.kind = REPORT_SHARE,
		.join = REPORT_JOIN_MEAN,
		.help = "of the replays whose nodes were timed"},
	{.key = "total_ns",
		.title = "Total",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.is_lead = true,
		.help = "null: not timed"},
	REPORT_RANK_SPREAD(0),
	{.key = "count", .title = "Count", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.title = "Mean", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	{.key = "minimum_ns", .kind = REPORT_NS},
	{.key = "maximum_ns", .kind = REPORT_NS},
	{.title = "Rank",
		.kind = REPORT_INTEGER,
		.hide = REPORT_HIDE_SAME,
		.join = REPORT_JOIN_RANK},
	{.title = "Graph", .kind = REPORT_INTEGER, .join = REPORT_JOIN_KEY, .unknown = "?"},
	{.key = "node",
		.kind = REPORT_INTEGER,
		.join = REPORT_JOIN_KEY,
		.help = "null: not known; all of that name"},
	{.key = "kind", .kind = REPORT_TEXT},
	{.key = "name",
		.title = "Node",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.is_name = true,
		.shrinks_to = 12},
	PLACE_COLUMNS("captured_by", "Captured by"),
};
static const struct report_shape node_shape = REPORT_SHAPE(node_columns);

static void add_node(struct result *result, const struct model *model,
	const struct device_graphs *graphs, const struct device_graph_node *node)
{
	const struct device_graph *graph = &graphs->graphs.items[node->graph];
	bool known = node->count != 0;

	result_share(result, (double)node->total_ns, known ? (double)graph->node_work_ns : 0);
	result_known(result, known, node->total_ns);
	report_add_rank_spread(result);
	result_u64(result, node->count);
	result_known(result, known, known ? node->total_ns / node->count : 0);
	result_known(result, known, node->minimum_ns);
	result_known(result, known, node->maximum_ns);
	result_known(result, graph->rank != MODEL_NONE, graph->rank);
	result_known(result, graph->id != 0, graph->id);
	result_known(result, node->id != 0, node->id);
	result_text(result, wire_device_kind_name(node->kind));
	result_text(result, node->name);
	add_place(result, model, node->frame);
}

/* ---- graphs ---- */

static const struct report_column graph_columns[] = {
	{.title = "Time", .kind = REPORT_SHARE, .join = REPORT_JOIN_SUM},
	{.key = "work_ns",
		.title = "Total",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.is_lead = true,
		.help = "of all nodes"},
	REPORT_RANK_SPREAD(0),
	{.key = "replays", .title = "Replays", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.key = "device_replays",
		.title = "On GPU",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of the replays: launched on the device, with --graph device"},
	{.title = "Each", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	{.title = "Nodes", .kind = REPORT_COUNT, .join = REPORT_JOIN_MEAN},
	{.key = "capture_ns",
		.title = "Capture",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.unknown = "not seen",
		.hide = REPORT_HIDE_UNKNOWN},
	{.key = "capture_bytes",
		.title = "Memory",
		.kind = REPORT_BYTES,
		.join = REPORT_JOIN_MEAN,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "of the device, that the process allocated meanwhile"},
	REPORT_RANK_COLUMN,
	{.key = "graph",
		.title = "Graph",
		.kind = REPORT_INTEGER,
		.join = REPORT_JOIN_KEY,
		.unknown = "?",
		.help = "null: the trace does not say which"},
	{.key = "pid", .kind = REPORT_INTEGER},
	{.key = "captured_graph", .kind = REPORT_INTEGER, .help = "that it was made from"},
	{.key = "captured_nodes", .kind = REPORT_COUNT},
	{.key = "instantiations", .kind = REPORT_COUNT},
	{.key = "instantiate_ns", .kind = REPORT_NS},
	{.key = "span_ns",
		.kind = REPORT_NS,
		.help = "of all replays, each from its first start to its last end"},
	{.key = "timed_as_whole", .kind = REPORT_FLAG, .help = "all replays, or some"},
	{.key = "whole_replays",
		.kind = REPORT_COUNT,
		.help = "timed as a whole: the times of nodes are of the others alone"},
	{.key = "median_whole_ns", .kind = REPORT_NS, .help = "of these; null: there are none"},
	{.key = "median_by_node_ns",
		.kind = REPORT_NS,
		.help = "of the others, from the first start to the last end"},
	PLACE_COLUMNS("captured_by", "Captured by"),
	PLACE_COLUMNS("replayed_by", "Replayed by"),
	{.key = "launched_by_graphs",
		.title = "Launched by graph",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_UNKNOWN,
		.shrinks_to = 8,
		.help = "those on the device: by which executable graphs, and how; null: none"},
	{.key = "nodes", .kind = REPORT_ROWS, .shape = &node_shape},
};
static const struct report_shape graph_shape = REPORT_SHAPE(graph_columns);

/* "20, tail; 21, sibling" */
static void add_launchers(struct result *result, const struct device_graph *graph)
{
	static const char before[] = WIRE_DEVICE_GRAPH_NAME " by graph ";
	_cleanup_strbuf_ struct strbuf text = {0};

	for (uint32_t i = 0; i < graph->device_name_count; i++) {
		const char *name = graph->device_names[i];
		bool is_known = begins_with(name, before);

		strbuf_addf(&text, "%s%s", i ? "; " : "", is_known ? name + strlen(before) : "?");
	}
	if (graph->device_name_count)
		result_text(result, strbuf_cstr(&text));
	else
		result_null(result);
	strbuf_inherit_status(&result->texts, &text);
}

/* `next_node`: nodes are in the order of their graphs. */
static void add_graph(struct result *result, const struct model *model,
	const struct device_graphs *graphs, const struct device_graph *graph, uint64_t total_ns,
	size_t *next_node)
{
	result_share(result, (double)graph->work_ns, (double)total_ns);
	result_u64(result, graph->work_ns);
	report_add_rank_spread(result);
	result_u64(result, graph->replays);
	result_u64(result, graph->device_replays);
	result_known(result, graph->replays, graph->replays ? graph->span_ns / graph->replays : 0);
	result_u64(result, graph->node_count ? graph->node_count : graph->captured_nodes);
	result_known(result, graph->has_capture, graph->capture_ns);
	result_known(result, graph->has_capture, graph->capture_bytes);
	result_known(result, graph->rank != MODEL_NONE, graph->rank);
	result_known(result, graph->id != 0, graph->id);
	result_known(result, graph->pid != 0, graph->pid);
	result_known(result, graph->source, graph->source);
	result_known(result, graph->has_capture, graph->captured_nodes);
	result_u64(result, graph->instantiations);
	result_known(result, graph->instantiations, graph->instantiate_ns);
	result_u64(result, graph->span_ns);
	result_flag(result, graph->whole_replays != 0);
	result_u64(result, graph->whole_replays);
	result_known(result, graph->whole_replays, graph->median_whole_ns);
	result_known(result, graph->replays > graph->whole_replays, graph->median_by_node_ns);
	add_place(result, model, graph->capture_frame);
	add_place(result, model, graph->replay_frame);
	add_launchers(result, graph);
	result_open(result);
	while (*next_node < graphs->nodes.count &&
		graphs->nodes.items[*next_node].graph == graph->place)
		add_node(result, model, graphs, &graphs->nodes.items[(*next_node)++]);
	result_close(result);
}

static const struct report_column columns[] = {
	{.key = "graphs",
		.kind = REPORT_ROWS,
		.shape = &graph_shape,
		.help = "executable graphs of CUDA, most time first"},
	{.kind = REPORT_ROWS, .shape = &node_shape}, /* of all graphs, in the terminal */
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* What the times of its nodes do not cover. */
static void say_sampled(struct result *result, const struct device_graph *graph)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "Graph %llu: the times of nodes are of ", (unsigned long long)graph->id);
	format_count(&text, graph->replays - graph->whole_replays);
	strbuf_add(&text, " of ");
	format_plural(&text, graph->replays, "replay (median ", "replays (median ");
	format_duration(&text, graph->median_by_node_ns);
	strbuf_add(&text, "); the others were timed as a whole (");
	format_duration(&text, graph->median_whole_ns);
	strbuf_add(&text, ").");
	result_say(result, 2, &text);
}

static void say_levels(struct result *result, const struct device_graphs *graphs, size_t limit)
{
	bool is_whole = false, is_of_device = false;
	size_t said = 0;

	array_foreach (&graphs->graphs, graph) {
		is_whole |= graph->replays && graph->whole_replays == graph->replays;
		is_of_device |= graph->device_replays != 0;
		if (graph->whole_replays && graph->whole_replays < graph->replays && said++ < limit)
			say_sampled(result, graph);
	}
	if (is_whole)
		result_sentencef(result, 2,
			"Graph launches were timed as one (--graph %s%s): their nodes have no "
			"times.",
			is_of_device ? "device" : "graph", said ? " or auto" : "");
}

static void show(struct result *result, const struct report_input *input,
	const struct device_graphs *graphs, uint32_t table, uint32_t nodes)
{
	struct result_show how = {.limit = report_rows_shown(input, 20, 8), .noun = "graphs"};

	result_heading(result, "CUDA graphs");
	result_show(result, report_join_ranks(result, input, table), &how);
	say_levels(result, graphs, how.limit);
	if (!graphs->nodes.count)
		return;
	how.noun = "nodes";
	result_heading(result, "Nodes of these graphs");
	result_show(result, report_join_ranks(result, input, nodes), &how);
}

static int make(struct result *result, const struct report_input *input)
{
	const struct model *model = input->view->model;
	_cleanup_device_graphs_ struct device_graphs graphs = {0};
	uint64_t total_ns = 0;
	size_t next_node = 0;
	uint32_t table, nodes;
	int r = device_graphs_init(&graphs, model, input->trace->views, input->trace->count);

	if (r < 0)
		return r;
	if (!graphs.graphs.count || selection_left_out(model, SELECTION_GRAPHS))
		return report_nothing(
			result, input, "There is no launch of a CUDA graph, and none was made.");
	array_foreach (&graphs.graphs, graph)
		total_ns += graph->work_ns;
	result_open(result);
	table = result_open(result);
	array_foreach (&graphs.graphs, graph)
		add_graph(result, model, &graphs, graph, total_ns, &next_node);
	result_close(result);
	nodes = result_open(result);
	array_foreach (&graphs.nodes, node)
		add_node(result, model, &graphs, node);
	result_close(result);
	result_close(result);
	if (input->is_alone)
		show(result, input, &graphs, table, nodes);
	return 0;
}

const struct report_section graphs_section = {
	.value = {.kind = REPORT_OBJECT, .shape = &shape},
	.by = "graph",
	.summary = "captures and replays of CUDA graphs, and their nodes",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_GRAPHS,
	.make = make,
};
