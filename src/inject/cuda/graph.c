/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call made a node of a graph: the capture's call for the node it made, the same for each
 * clone of the node (instantiations, clones of graphs, child graphs, bodies of conditional nodes).
 * The callbacks put what they see into a queue; the writer keeps the map, so that it needs no lock,
 * and no record of a replay can overtake the nodes that it is about.
 */
#include <stdlib.h>
#include <string.h>

#include "inject/cuda/cuda.h"

#define QUEUE_EVENTS (64 * 1024) /* a power of two */
#define WAKE_EVENTS  4096        /* the writer is woken when so many more came */
#define KEPT_SWEEPS  10          /* what was destroyed stays so long for records to come */

enum event_type {
	EVENT_NODE,  /* made by a call */
	EVENT_CLONE, /* of another */
	EVENT_NODE_GONE,
	EVENT_GRAPH_GONE,
	EVENT_EXEC,
	EVENT_EXEC_GONE,
};

struct event {
	uint32_t type;  /* enum event_type */
	uint32_t graph; /* that the node is of; of executables, the graph they were made from */
	uint32_t exec;
	uint64_t node, original;
	uint64_t correlation;   /* of the call that made a node */
	uint64_t instantiation; /* in which it was cloned; 0: none */
};

/* ---- the queue: many producers, one consumer ---- */

struct cell {
	_Atomic uint64_t turn; /* 2 × lap: may be written, 2 × lap + 1: may be read */
	struct event event;
};

static struct cell cells[QUEUE_EVENTS];
static _Atomic uint64_t queue_head;
static uint64_t queue_tail; /* the writer's */

static void push(const struct event *event)
{
	uint64_t head = atomic_load_explicit(&queue_head, memory_order_relaxed);
	struct cell *cell;
	uint64_t turn;

	for (;;) {
		cell = &cells[head % QUEUE_EVENTS];
		turn = atomic_load_explicit(&cell->turn, memory_order_acquire);
		if (turn < head / QUEUE_EVENTS * 2) {
			atomic_fetch_add_explicit(&cuda.lost_graph_events, 1, memory_order_relaxed);
			return;
		}
		if (turn > head / QUEUE_EVENTS * 2)
			head = atomic_load_explicit(&queue_head, memory_order_relaxed);
		else if (atomic_compare_exchange_weak_explicit(&queue_head, &head, head + 1,
				 memory_order_relaxed, memory_order_relaxed))
			break;
	}
	cell->event = *event;
	atomic_store_explicit(&cell->turn, turn + 1, memory_order_release);
	if (head % WAKE_EVENTS == WAKE_EVENTS - 1)
		inject_worker_wake(&cuda.writer);
}

static bool pop(struct event *ret_event)
{
	struct cell *cell = &cells[queue_tail % QUEUE_EVENTS];
	uint64_t turn = queue_tail / QUEUE_EVENTS * 2 + 1;

	if (atomic_load_explicit(&cell->turn, memory_order_acquire) != turn)
		return false;
	*ret_event = cell->event;
	atomic_store_explicit(&cell->turn, turn + 1, memory_order_release);
	queue_tail++;
	return true;
}

/* ---- the callbacks ---- */

static uint32_t graph_id(cupti_handle graph)
{
	uint32_t id = 0;

	if (graph && cuda.cupti.call.graph_id)
		cuda.cupti.call.graph_id(graph, &id);
	return id;
}

static uint32_t exec_id(cupti_handle exec)
{
	uint32_t id = 0;

	if (exec && cuda.cupti.call.exec_id)
		cuda.cupti.call.exec_id(exec, &id);
	return id;
}

static uint64_t node_id(cupti_handle node)
{
	uint64_t id = 0;

	if (node && cuda.cupti.call.node_id)
		cuda.cupti.call.node_id(node, &id);
	return id;
}

static bool is_launch(const struct cuda_call *call)
{
	return call->role < CUDA_ROLE_CAPTURE_BEGIN;
}

/* Node types of wire/device.h are CUgraphNodeType. Here: those whose launch is one of ours. */
static unsigned launch_kind(int32_t node_type)
{
	return node_type == WIRE_NODE_COPY    ? WIRE_DEVICE_COPY
	       : node_type == WIRE_NODE_FILL  ? WIRE_DEVICE_FILL
	       : node_type == WIRE_NODE_GRAPH ? WIRE_DEVICE_GRAPH
					      : WIRE_DEVICE_KERNEL;
}

/* What a graph consists of, where its nodes will have no records of their own. */
static void tell_node(const struct event *event, int32_t node_type, const char *symbol)
{
	struct {
		struct wire_device_node node;
		char text[WIRE_DEVICE_MAX_BYTES - sizeof(struct wire_device_node)];
	} out = {0};
	size_t length = symbol ? strnlen(symbol, sizeof(out.text)) : 0;

	if (!cuda.tells_nodes || !inject_is_open())
		return;
	out.node.record.type = WIRE_RECORD_DEVICE_NODE;
	out.node.record.length_bytes = (uint32_t)(sizeof(out.node) + (length + 7) / 8 * 8);
	out.node.node = event->node;
	out.node.original = event->original;
	out.node.correlation = event->correlation;
	out.node.graph = event->graph;
	out.node.node_type = (uint32_t)node_type;
	out.node.text_bytes = (uint32_t)length;
	if (length)
		memcpy(out.text, symbol, length);
	inject_write(&out.node.record);
}

/* Within the captured launch, on its thread, or by a call that adds nodes. */
static void on_node(const struct cupti_graph_data *data)
{
	struct cuda_call *call = cuda_current_call();
	struct event event = {
		.type = EVENT_NODE,
		.graph = graph_id(data->graph),
		.node = node_id(data->node),
	};

	if (call) {
		event.correlation = call->correlation;
		call->nodes++;
	} else {
		event.correlation = cuda_launch_without_call(launch_kind(data->node_type));
	}
	if (!call || is_launch(call))
		cuda_count_captured_node(event.graph);
	tell_node(&event, data->node_type, call ? call->symbol : NULL);
	push(&event);
}

static void on_clone(const struct cupti_graph_data *data)
{
	struct cuda_call *call = cuda_current_call();
	struct event event = {
		.type = EVENT_CLONE,
		.graph = graph_id(data->graph),
		.node = node_id(data->node),
		.original = node_id(data->original_node),
	};

	if (call) {
		event.instantiation = call->instantiation;
		call->nodes++;
	}
	tell_node(&event, data->node_type, NULL);
	push(&event);
}

static void tell(unsigned what, uint32_t graph, uint32_t other)
{
	uint64_t now_ns = inject_now_ns();
	struct wire_device_graph record = {
		.record = {.type = WIRE_RECORD_DEVICE_GRAPH, .length_bytes = sizeof(record)},
		.enter_ns = now_ns,
		.exit_ns = now_ns,
		.tid = inject_tid(),
		.graph = graph,
		.other = other,
		.event = (uint8_t)what,
	};

	inject_write(&record.record);
}

static void on_exec(const struct cupti_graph_data *data)
{
	struct cuda_call *call = cuda_current_call();
	struct event event = {
		.type = EVENT_EXEC,
		.graph = graph_id(data->graph),
		.exec = exec_id(data->exec),
	};

	if (call && call->role == CUDA_ROLE_INSTANTIATE) {
		event.instantiation = call->instantiation;
		call->graph = event.graph;
		call->other = event.exec;
	} else {
		tell(WIRE_GRAPH_INSTANTIATE, event.graph, event.exec);
	}
	push(&event);
}

void cuda_on_resource(uint32_t id, const struct cupti_resource_data *data)
{
	const struct cupti_graph_data *graph = data ? data->descriptor : NULL;
	struct event gone = {0};

	if (id == CUPTI_RESOURCE_DRIVER_READY) {
		cuda_unified_retry();
		return;
	}
	if (!graph)
		return;
	switch (id) {
	case CUPTI_RESOURCE_GRAPHNODE_CREATED:
		on_node(graph);
		return;
	case CUPTI_RESOURCE_GRAPHNODE_CLONED:
		on_clone(graph);
		return;
	case CUPTI_RESOURCE_GRAPHEXEC_CREATED:
		on_exec(graph);
		return;
	case CUPTI_RESOURCE_GRAPH_CREATED:
		tell(WIRE_GRAPH_CREATE, graph_id(graph->graph), 0);
		return;
	case CUPTI_RESOURCE_GRAPH_CLONED:
		tell(WIRE_GRAPH_CLONE, graph_id(graph->graph), graph_id(graph->original_graph));
		return;
	case CUPTI_RESOURCE_GRAPHNODE_DESTROY_STARTING:
		gone = (struct event){.type = EVENT_NODE_GONE, .node = node_id(graph->node)};
		break;
	case CUPTI_RESOURCE_GRAPH_DESTROY_STARTING:
		gone = (struct event){.type = EVENT_GRAPH_GONE, .graph = graph_id(graph->graph)};
		tell(WIRE_GRAPH_DESTROY, gone.graph, 0);
		break;
	case CUPTI_RESOURCE_GRAPHEXEC_DESTROY_STARTING:
		gone = (struct event){.type = EVENT_EXEC_GONE, .exec = exec_id(graph->exec)};
		tell(WIRE_GRAPH_EXEC_DESTROY, gone.exec, 0);
		break;
	default:
		return;
	}
	push(&gone);
}

void cuda_enable_graphs(bool on)
{
	static const uint32_t ids[] = {
		CUPTI_RESOURCE_GRAPH_CREATED,
		CUPTI_RESOURCE_GRAPH_DESTROY_STARTING,
		CUPTI_RESOURCE_GRAPH_CLONED,
		CUPTI_RESOURCE_GRAPHNODE_CREATED,
		CUPTI_RESOURCE_GRAPHNODE_DESTROY_STARTING,
		CUPTI_RESOURCE_GRAPHEXEC_CREATED,
		CUPTI_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
		CUPTI_RESOURCE_GRAPHNODE_CLONED,
	};

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		cupti_enable_callback(&cuda.cupti, CUPTI_DOMAIN_RESOURCE, ids[i], on);
}

/* ---- the map, the writer's alone ---- */

struct node {
	uint64_t id; /* 0: free */
	uint64_t correlation;
	uint64_t instantiation; /* 0: it belongs to `graph` */
	uint32_t graph;
	uint32_t gone_at; /* the sweep that found it destroyed; 0: it lives */
};

struct exec {
	uint64_t instantiation;
	uint32_t id;
	uint32_t graph; /* that it was made from */
	uint32_t gone_at;
};

static struct node *nodes;
static size_t node_count, node_capacity; /* a power of two, at least half free */
static struct exec *execs;
static size_t exec_count, exec_capacity;
static uint32_t sweep = 1;
static bool some_gone;

static struct node *place_of(struct node *table, size_t capacity, uint64_t id)
{
	size_t i = (id * 0x9e3779b97f4a7c15ULL) >> 20;

	while (table[i & (capacity - 1)].id && table[i & (capacity - 1)].id != id)
		i++;
	return &table[i & (capacity - 1)];
}

static struct node *find_node(uint64_t id)
{
	struct node *place = node_capacity ? place_of(nodes, node_capacity, id) : NULL;

	return place && place->id ? place : NULL;
}

/* Into a new table, without what is long gone. False: out of memory, nothing changed. */
static bool rebuild(size_t capacity)
{
	struct node *table = calloc(capacity, sizeof(*table));

	if (!table)
		return false;
	node_count = 0;
	for (size_t i = 0; i < node_capacity; i++) {
		if (!nodes[i].id || (nodes[i].gone_at && sweep - nodes[i].gone_at > KEPT_SWEEPS))
			continue;
		*place_of(table, capacity, nodes[i].id) = nodes[i];
		node_count++;
	}
	free(nodes);
	nodes = table;
	node_capacity = capacity;
	return true;
}

static void put_node(const struct event *event, uint64_t correlation)
{
	struct node *place;

	if (!event->node)
		return;
	if (node_count * 2 >= node_capacity && !rebuild(node_capacity ? node_capacity * 2 : 1024)) {
		atomic_fetch_add_explicit(&cuda.lost_graph_events, 1, memory_order_relaxed);
		return;
	}
	place = place_of(nodes, node_capacity, event->node);
	node_count += !place->id;
	*place = (struct node){
		.id = event->node,
		.correlation = correlation,
		.instantiation = event->instantiation,
		.graph = event->graph,
	};
}

static void put_exec(const struct event *event)
{
	if (exec_count == exec_capacity) {
		size_t capacity = exec_capacity ? exec_capacity * 2 : 64;
		struct exec *grown = reallocarray(execs, capacity, sizeof(*execs));

		if (!grown)
			return;
		execs = grown;
		exec_capacity = capacity;
	}
	execs[exec_count++] = (struct exec){
		.instantiation = event->instantiation,
		.id = event->exec,
		.graph = event->graph,
	};
}

/* The newest of this id: a driver may use ids again. */
static struct exec *find_exec(uint32_t id)
{
	for (size_t i = exec_count; i > 0; i--)
		if (execs[i - 1].id == id)
			return &execs[i - 1];
	return NULL;
}

static void mark_nodes_gone(uint64_t instantiation, uint32_t graph)
{
	for (size_t i = 0; i < node_capacity; i++)
		if (nodes[i].id && !nodes[i].gone_at && nodes[i].instantiation == instantiation &&
			(instantiation || nodes[i].graph == graph))
			nodes[i].gone_at = sweep;
	some_gone = true;
}

static void mark_exec_gone(uint32_t id)
{
	struct exec *exec = find_exec(id);

	if (!exec || exec->gone_at)
		return;
	exec->gone_at = sweep;
	if (exec->instantiation)
		mark_nodes_gone(exec->instantiation, 0);
	some_gone = true;
}

static void apply(const struct event *event)
{
	struct node *node;

	switch (event->type) {
	case EVENT_NODE:
		put_node(event, event->correlation);
		break;
	case EVENT_CLONE:
		node = find_node(event->original);
		if (node)
			put_node(event, node->correlation);
		break;
	case EVENT_NODE_GONE:
		node = find_node(event->node);
		if (node && !node->gone_at)
			node->gone_at = sweep;
		some_gone |= node != NULL;
		break;
	case EVENT_GRAPH_GONE:
		if (event->graph)
			mark_nodes_gone(0, event->graph);
		break;
	case EVENT_EXEC:
		put_exec(event);
		break;
	case EVENT_EXEC_GONE:
		mark_exec_gone(event->exec);
		break;
	default:
		break;
	}
}

void cuda_graph_drain(void)
{
	struct event event;

	while (pop(&event))
		apply(&event);
}

bool cuda_graph_capture(uint32_t exec, uint64_t id, uint64_t *ret_correlation)
{
	struct node *node = find_node(id);
	struct exec *from = node ? NULL : find_exec(exec);

	/*
	 * Without a callback for the clone: ids are a graph's id and the node's place in it, and
	 * flat graphs keep the places of their nodes.
	 */
	if (from && from->graph)
		node = find_node((uint64_t)from->graph << 32 | (uint32_t)id);
	if (!node)
		return false;
	*ret_correlation = node->correlation;
	return true;
}

void cuda_graph_sweep(void)
{
	size_t kept = 0;
	bool later = false;

	sweep++;
	if (!some_gone)
		return;
	for (size_t i = 0; i < exec_count; i++) {
		if (execs[i].gone_at && sweep - execs[i].gone_at > KEPT_SWEEPS)
			continue;
		later |= execs[i].gone_at != 0;
		execs[kept++] = execs[i];
	}
	exec_count = kept;
	for (size_t i = 0; i < node_capacity && !later; i++)
		later = nodes[i].gone_at && sweep - nodes[i].gone_at <= KEPT_SWEEPS;
	if (node_capacity)
		rebuild(node_capacity);
	some_gone = later;
}
