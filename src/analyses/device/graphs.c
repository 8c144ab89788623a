/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/graphs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/charge.h"
#include "analyses/device/device_work.h"
#include "base/map.h"

/* Process and pid as in struct device_graph. */
struct graph_key {
	uint64_t id;
	uint32_t process, pid;
};

/* Nodes without an id are told apart by their names, which is else 0. */
struct node_key {
	uint64_t node;
	uint32_t graph, name;
};

struct replay_key {
	uint64_t correlation; /* as a whole: its place */
	uint32_t graph, is_whole;
};

struct replay {
	uint32_t graph;
	bool is_whole;
	int64_t start_ns, end_ns;
};

/* The last capture of a graph, and the one that a thread is in. */
struct capture {
	uint64_t begin_ns, duration_ns, bytes;
	uint32_t nodes, frame;
};

struct tables {
	struct intern graphs, nodes, names, replays;
	ARRAY_OF(struct replay) replay_list;
	struct intern sources; /* graph_key of a captured graph → captures.items[id] */
	ARRAY_OF(struct capture) captures;
	struct intern threads; /* graph_key of process and thread → begun.items[id] */
	ARRAY_OF(struct capture) begun;
};

/* Nothing but whose it is. */
static struct device_graph graph_of_process(
	const struct model *model, uint32_t process, uint64_t id)
{
	return (struct device_graph){
		.id = id,
		.process = process,
		.pid = model->processes.items[process].pid,
		.rank = model->processes.items[process].rank,
		.capture_frame = MODEL_NONE,
		.replay_frame = MODEL_NONE,
	};
}

static struct graph_key key_of(const struct device_graph *graph)
{
	return (struct graph_key){.id = graph->id, .process = graph->process, .pid = graph->pid};
}

static int find_graph(struct device_graphs *graphs, struct tables *tables,
	const struct device_graph *like, uint32_t *ret_graph)
{
	const struct graph_key key = key_of(like);
	int r = intern_add(&tables->graphs, &key, sizeof(key), ret_graph);

	return r <= 0 ? r : array_append(&graphs->graphs, *like);
}

/* ---- how they were made ---- */

static int begin_capture(
	struct tables *tables, const struct model *model, const struct model_graph_call *call)
{
	const struct graph_key key = {.process = call->process, .id = call->call.tid};
	struct capture *begun;
	uint32_t thread;
	int r = intern_add(&tables->threads, &key, sizeof(key), &thread);

	if (r > 0)
		r = array_append(&tables->begun, (struct capture){0});
	if (r < 0)
		return r;
	assert(tables->begun.items);
	begun = &tables->begun.items[thread];
	begun->begin_ns = call->time_ns;
	begun->frame = charge_frame(model, call->stack);
	return 0;
}

/* Frameworks keep a pool for each graph: what a capture allocates stays with it. */
static uint64_t allocated_in(
	const struct model *model, uint32_t process, const struct capture *capture)
{
	uint64_t bytes = 0;

	array_foreach (&model->device_memory, one) {
		if (one->process == process && !one->memory.released &&
			one->time_ns - capture->begin_ns < capture->duration_ns &&
			model_is_device_memory(one))
			bytes += one->memory.bytes;
	}
	return bytes;
}

static int end_capture(struct device_graphs *graphs, struct tables *tables,
	const struct model *model, const struct model_graph_call *call)
{
	const struct graph_key thread_key = {.process = call->process, .id = call->call.tid};
	const struct graph_key key = {.process = call->process, .id = call->call.graph};
	struct capture capture = {
		.begin_ns = call->time_ns, .frame = charge_frame(model, call->stack)};
	uint32_t thread, source;
	int r;

	if (intern_find(&tables->threads, &thread_key, sizeof(thread_key), &thread) &&
		thread < tables->begun.count)
		capture = tables->begun.items[thread];
	capture.nodes = call->call.nodes;
	capture.duration_ns = call->time_ns + call->call.duration_ns - capture.begin_ns;
	capture.bytes = allocated_in(model, call->process, &capture);
	graphs->captures++;
	graphs->captured_launches += capture.nodes;
	if (!call->call.graph)
		return 0;
	r = intern_add(&tables->sources, &key, sizeof(key), &source);
	if (r > 0)
		return array_append(&tables->captures, capture);
	if (r == 0 && source < tables->captures.count)
		tables->captures.items[source] = capture;
	return r;
}

static int add_instantiation(struct device_graphs *graphs, struct tables *tables,
	const struct model *model, const struct model_graph_call *call)
{
	const struct graph_key key = {.process = call->process, .id = call->call.graph};
	struct device_graph like, *graph;
	uint32_t index, source;
	int r;

	if (!call->call.other || call->call.failed)
		return 0;
	like = graph_of_process(model, call->process, call->call.other);
	r = find_graph(graphs, tables, &like, &index);
	if (r < 0)
		return r;
	graph = &graphs->graphs.items[index];
	graph->source = call->call.graph;
	graph->instantiations++;
	graph->instantiate_ns += call->call.duration_ns;
	if (!intern_find(&tables->sources, &key, sizeof(key), &source) ||
		source >= tables->captures.count)
		return 0;
	graph->has_capture = true;
	graph->capture_ns = tables->captures.items[source].duration_ns;
	graph->capture_bytes = tables->captures.items[source].bytes;
	graph->captured_nodes = tables->captures.items[source].nodes;
	graph->capture_frame = tables->captures.items[source].frame;
	return 0;
}

static int add_call(struct device_graphs *graphs, struct tables *tables, const struct model *model,
	const struct model_graph_call *call)
{
	switch (call->call.event) {
	case WIRE_GRAPH_CAPTURE_BEGIN:
		return begin_capture(tables, model, call);
	case WIRE_GRAPH_CAPTURE_END:
		return end_capture(graphs, tables, model, call);
	case WIRE_GRAPH_INSTANTIATE:
		return add_instantiation(graphs, tables, model, call);
	default:
		return 0;
	}
}

/* ---- how they ran ---- */

/* A replay's work, as a row, and as it was recorded, where it was. */
struct replayed {
	const struct trace_view *view;
	const struct trace_view_work *work;
	const struct trace_event *event;
	const struct trace_work *detail;
	const struct model_device_work *recorded; /* NULL: in another tool's trace */
};

static int find_node(struct device_graphs *graphs, struct tables *tables, uint32_t graph,
	uint64_t id, const char *name, struct device_graph_node **ret_node)
{
	struct node_key key = {.node = id, .graph = graph};
	uint32_t index;
	int r = id ? 0 : intern_add(&tables->names, name, strlen(name), &key.name);

	if (r >= 0)
		r = intern_add(&tables->nodes, &key, sizeof(key), &index);
	if (r > 0) {
		graphs->graphs.items[graph].node_count++;
		r = array_append(&graphs->nodes,
			(struct device_graph_node){
				.graph = graph, .id = id, .name = "", .frame = MODEL_NONE});
	}
	if (r < 0)
		return r;
	*ret_node = &graphs->nodes.items[index];
	return 0;
}

static uint8_t kind_of(const struct replayed *one)
{
	if (one->recorded)
		return one->recorded->kind;
	if (one->event->category != TRACE_KERNEL)
		return one->event->category == TRACE_MEMSET ? WIRE_DEVICE_FILL : WIRE_DEVICE_COPY;
	return one->detail->graph && !one->detail->graph_node ? WIRE_DEVICE_GRAPH
							      : WIRE_DEVICE_KERNEL;
}

static int add_node_work(struct device_graphs *graphs, struct tables *tables,
	const struct model *model, const struct replayed *one, uint32_t graph)
{
	uint64_t time_ns = (uint64_t)trace_view_work_ns(one->work);
	const char *name = trace_text(one->view->trace, one->event->name);
	struct device_graph_node *node;
	int r = find_node(graphs, tables, graph, one->detail->graph_node, name, &node);

	if (r < 0)
		return r;
	node->minimum_ns = node->count ? MIN(node->minimum_ns, time_ns) : time_ns;
	node->maximum_ns = MAX(node->maximum_ns, time_ns);
	node->count++;
	node->total_ns += time_ns;
	node->name = name;
	node->kind = kind_of(one);
	if (one->recorded)
		node->frame = charge_frame(model, one->recorded->stack);
	return 0;
}

static int add_replay(struct device_graphs *graphs, struct tables *tables,
	const struct replayed *one, uint32_t graph)
{
	bool is_whole = kind_of(one) == WIRE_DEVICE_GRAPH;
	/* What was timed as a whole is one: the device may launch more in that of the host. */
	const struct replay_key key = {
		.correlation = is_whole ? tables->replay_list.count : one->event->correlation,
		.graph = graph,
		.is_whole = is_whole};
	struct replay *replay;
	uint32_t id;
	int r = intern_add(&tables->replays, &key, sizeof(key), &id);

	if (r > 0) {
		graphs->graphs.items[graph].replays++;
		graphs->graphs.items[graph].whole_replays += is_whole;
		return array_append(&tables->replay_list,
			(struct replay){graph, is_whole, one->work->start_ns, one->work->end_ns});
	}
	if (r < 0)
		return r;
	replay = &tables->replay_list.items[id];
	replay->start_ns = MIN(replay->start_ns, one->work->start_ns);
	replay->end_ns = MAX(replay->end_ns, one->work->end_ns);
	return 0;
}

/* A file need not say which graph: CUPTI's ids of nodes have its id above their own. */
static uint64_t graph_id_of(const struct trace_work *detail)
{
	return detail->graph ? detail->graph : detail->graph_node >> 32;
}

static bool is_replayed(const struct replayed *one)
{
	const struct trace *trace = one->view->trace;

	if (one->recorded)
		return one->recorded->replayed;
	if (graph_id_of(one->detail) || one->detail->graph_node)
		return true;
	return one->work->launch != MODEL_NONE &&
	       strstr(trace_text(trace, trace->events.items[one->work->launch].name),
		       "GraphLaunch");
}

/* Of the thread of a call; 0: it is no number. */
static uint32_t pid_of_launch(const struct trace *trace, uint32_t launch)
{
	int64_t pid = trace->tracks.items[trace->events.items[launch].track].pid;

	return pid > 0 && pid <= UINT32_MAX ? (uint32_t)pid : 0;
}

/* `some_pid`: whose it is where the trace does not have its launch. */
static struct device_graph graph_of_work(
	const struct model *model, const struct replayed *one, uint32_t place, uint32_t some_pid)
{
	const struct trace_view *view = one->view;
	bool has_rank = view->trace->rank != MODEL_NONE || model->traces.count > 1;

	if (one->recorded)
		return graph_of_process(model, one->recorded->process, one->recorded->graph);
	return (struct device_graph){
		.id = graph_id_of(one->detail),
		.process = place,
		.pid = one->work->launch == MODEL_NONE
			       ? some_pid
			       : pid_of_launch(view->trace, one->work->launch),
		.rank = has_rank ? view->rank : MODEL_NONE,
		.capture_frame = MODEL_NONE,
		.replay_frame = MODEL_NONE,
	};
}

static int add_work(struct device_graphs *graphs, struct tables *tables, const struct model *model,
	const struct replayed *one, const struct device_graph *like)
{
	bool is_whole = kind_of(one) == WIRE_DEVICE_GRAPH;
	struct device_graph *graph;
	uint32_t index;
	int r = find_graph(graphs, tables, like, &index);

	if (r == 0 && !is_whole)
		r = add_node_work(graphs, tables, model, one, index);
	if (r == 0)
		r = add_replay(graphs, tables, one, index);
	if (r < 0)
		return r;
	graph = &graphs->graphs.items[index];
	graph->work_ns += (uint64_t)trace_view_work_ns(one->work);
	if (is_whole)
		device_graph_add_name(graph, trace_text(one->view->trace, one->event->name));
	else
		graph->node_work_ns += (uint64_t)trace_view_work_ns(one->work);
	if (one->recorded)
		graph->replay_frame = charge_frame(model, one->recorded->launch_stack);
	return 0;
}

static uint32_t first_pid(const struct trace_view *view)
{
	array_foreach (&view->works, work) {
		if (work->launch != MODEL_NONE)
			return pid_of_launch(view->trace, work->launch);
	}
	return 0;
}

static int add_works(struct device_graphs *graphs, struct tables *tables, const struct model *model,
	const struct trace_view *view, uint32_t place)
{
	const struct model *recorded = view->trace->recorded;
	uint32_t pid = first_pid(view);
	int r = 0;

	array_foreach (&view->works, work) {
		struct replayed one = {.view = view, .work = work};
		struct device_graph like;

		one.event = &view->trace->events.items[work->row];
		one.detail = trace_work(view->trace, one.event);
		if (r < 0 || !one.detail || work->is_wait)
			continue;
		if (recorded && one.detail->recorded)
			one.recorded = &recorded->device_works.items[one.detail->recorded - 1];
		if (!is_replayed(&one))
			continue;
		like = graph_of_work(model, &one, place, pid);
		r = add_work(graphs, tables, model, &one, &like);
	}
	return r;
}

/* ---- what graphs that are timed as a whole are made of ---- */

struct known_nodes {
	struct intern keys;         /* node_key of node and process → indices.items[id] */
	ARRAY_OF(uint32_t) indices; /* in the model: of a node that came twice, the last */
};

static int keep_node(struct known_nodes *known, const struct model *model, uint32_t index)
{
	const struct model_graph_node *node = &model->graph_nodes.items[index];
	const struct node_key key = {.node = node->node.node, .graph = node->process};
	uint32_t id;
	int r = intern_add(&known->keys, &key, sizeof(key), &id);

	if (r > 0)
		return array_append(&known->indices, index);
	if (r == 0)
		known->indices.items[id] = index;
	return r;
}

/* A clone is what its original is, whose name and stack it has. */
static const struct model_graph_node *original_of(const struct known_nodes *known,
	const struct model *model, const struct model_graph_node *node)
{
	uint32_t id;

	for (unsigned i = 0; i < 16 && node->node.original; i++) {
		const struct node_key key = {.node = node->node.original, .graph = node->process};

		if (!intern_find(&known->keys, &key, sizeof(key), &id))
			break;
		node = &model->graph_nodes.items[known->indices.items[id]];
	}
	return node;
}

static unsigned node_kind(const struct model_graph_node *node)
{
	return node->node.node_type == WIRE_NODE_KERNEL ? WIRE_DEVICE_KERNEL
	       : node->node.node_type == WIRE_NODE_COPY ? WIRE_DEVICE_COPY
	       : node->node.node_type == WIRE_NODE_FILL ? WIRE_DEVICE_FILL
							: WIRE_DEVICE_NONE;
}

/* Nodes that only order others are left out. */
static int add_known_node(struct device_graphs *graphs, struct tables *tables,
	const struct known_nodes *known, const struct model *model,
	const struct model_graph_node *one)
{
	const struct model_graph_node *from = original_of(known, model, one);
	const struct device_graph like = graph_of_process(model, one->process, one->node.graph);
	const struct graph_key key = key_of(&like);
	struct device_graph_node *node;
	uint32_t graph;
	int r;

	if (!intern_find(&tables->graphs, &key, sizeof(key), &graph) ||
		!graphs->graphs.items[graph].whole_replays || !node_kind(from))
		return 0;
	r = find_node(graphs, tables, graph, one->node.node, "", &node);
	if (r < 0 || node->count) /* it was timed in other replays */
		return r;
	node->kind = (uint8_t)node_kind(from);
	node->name = *from->name ? from->name : wire_device_kind_name(node->kind);
	node->frame = charge_frame(model, from->stack);
	return 0;
}

static int add_known_nodes(
	struct device_graphs *graphs, struct tables *tables, const struct model *model)
{
	struct known_nodes known = {0};
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < model->graph_nodes.count; i++)
		r = keep_node(&known, model, i);
	for (uint32_t i = 0; r == 0 && i < model->graph_nodes.count; i++)
		r = add_known_node(graphs, tables, &known, model, &model->graph_nodes.items[i]);
	intern_done(&known.keys);
	array_done(&known.indices);
	return r;
}

/* ---- spans ---- */

static uint64_t span_of(const struct replay *replay)
{
	return (uint64_t)replay->end_ns - (uint64_t)replay->start_ns;
}

static int compare_replays(const void *left, const void *right)
{
	const struct replay *a = left, *b = right;

	if (a->graph != b->graph)
		return a->graph < b->graph ? -1 : 1;
	if (a->is_whole != b->is_whole)
		return a->is_whole ? 1 : -1;
	return span_of(a) < span_of(b) ? -1 : span_of(a) > span_of(b);
}

/* What differs between replays that are timed by node and as a whole. */
static void add_spans(struct device_graphs *graphs, struct tables *tables)
{
	const struct replay *replays = tables->replay_list.items;
	size_t count = tables->replay_list.count, end;

	if (count)
		qsort(tables->replay_list.items, count, sizeof(*replays), compare_replays);
	for (size_t i = 0; i < count; i = end) {
		struct device_graph *graph = &graphs->graphs.items[replays[i].graph];
		uint64_t *median_ns =
			replays[i].is_whole ? &graph->median_whole_ns : &graph->median_by_node_ns;

		for (end = i; end < count && replays[end].graph == replays[i].graph &&
			      replays[end].is_whole == replays[i].is_whole;
			end++)
			graph->span_ns += span_of(&replays[end]);
		*median_ns = (span_of(&replays[i + (end - i - 1) / 2]) +
				     span_of(&replays[i + (end - i) / 2])) /
			     2;
	}
}

/* ---- all of it ---- */

static int compare_graphs(const void *left, const void *right)
{
	const struct device_graph *a = left, *b = right;

	if (a->work_ns != b->work_ns)
		return a->work_ns > b->work_ns ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static int compare_nodes(const void *left, const void *right)
{
	const struct device_graph_node *a = left, *b = right;

	if (a->graph != b->graph)
		return a->graph < b->graph ? -1 : 1;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Graphs move: their nodes name them by where they are afterwards. */
static int sort(struct device_graphs *graphs)
{
	size_t count = graphs->graphs.count;
	uint32_t *places;

	if (!count)
		return 0;
	places = calloc(count, sizeof(*places));
	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		graphs->graphs.items[i].place = (uint32_t)i;
	qsort(graphs->graphs.items, count, sizeof(*graphs->graphs.items), compare_graphs);
	for (size_t i = 0; i < count; i++) {
		places[graphs->graphs.items[i].place] = (uint32_t)i;
		graphs->graphs.items[i].place = (uint32_t)i;
	}
	array_foreach (&graphs->nodes, node)
		node->graph = places[node->graph];
	if (graphs->nodes.count)
		qsort(graphs->nodes.items, graphs->nodes.count, sizeof(*graphs->nodes.items),
			compare_nodes);
	free(places);
	return 0;
}

static void tables_done(struct tables *tables)
{
	intern_done(&tables->graphs);
	intern_done(&tables->nodes);
	intern_done(&tables->names);
	intern_done(&tables->replays);
	array_done(&tables->replay_list);
	intern_done(&tables->sources);
	array_done(&tables->captures);
	intern_done(&tables->threads);
	array_done(&tables->begun);
}

int device_graphs_init(struct device_graphs *graphs, const struct model *model,
	const struct trace_view *views, size_t count)
{
	struct tables tables = {0};
	int r = 0;

	*graphs = (struct device_graphs){0};
	for (size_t i = 0; r == 0 && i < model->graph_calls.count; i++)
		r = add_call(graphs, &tables, model, &model->graph_calls.items[i]);
	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = add_works(graphs, &tables, model, &views[i], i);
	r = r ?: add_known_nodes(graphs, &tables, model);
	add_spans(graphs, &tables);
	tables_done(&tables);
	r = r ?: sort(graphs);
	if (r < 0)
		device_graphs_done(graphs);
	return r;
}

void device_graphs_done(struct device_graphs *graphs)
{
	array_done(&graphs->graphs);
	array_done(&graphs->nodes);
}
