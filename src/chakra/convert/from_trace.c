/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/convert/from_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chakra/link/state.h"

static const char thread_name[] = "[pytorch|profiler|execution_trace|thread]";

/* The nodes so far, and their rows. */
struct builder {
	struct execution_trace *linked;
	const struct trace *trace;
	const uint32_t *parents; /* row → the row around it */
	uint32_t *nodes;         /* row → node; MODEL_NONE: it has none */
	uint8_t *launched;       /* row → it launched work */
	ARRAY_OF(uint32_t) rows; /* by node; MODEL_NONE: of a thread */
};

static void builder_done(struct builder *builder)
{
	free(builder->nodes);
	free(builder->launched);
	array_done(&builder->rows);
}

static int builder_init(struct builder *builder)
{
	const struct trace *trace = builder->trace;
	size_t count = trace->events.count + 1;

	builder->parents = trace_parents(trace, false);
	builder->nodes = malloc(count * sizeof(*builder->nodes));
	builder->launched = calloc(count, sizeof(*builder->launched));
	if (!builder->parents || !builder->nodes || !builder->launched)
		return -ENOMEM;
	memset(builder->nodes, 0xff, count * sizeof(*builder->nodes));
	array_foreach (&trace->events, event) {
		uint32_t launch = trace_is_work(event) ? trace_launch(trace, event) : MODEL_NONE;

		if (launch != MODEL_NONE)
			builder->launched[launch] = 1;
	}
	return 0;
}

static struct execution_text text_of(const struct trace *trace, uint32_t string)
{
	const struct intern_entry *entry = &trace->strings.entries.items[string];

	return (struct execution_text){entry->bytes, entry->length};
}

static int add_node(struct builder *builder, uint32_t row, struct execution_node node)
{
	node.id = builder->linked->nodes.count;
	node.start_ns = node.inclusive_ns = node.exclusive_ns = TRACE_NO_NUMBER;
	node.work = MODEL_NONE;
	node.inter_thread_dep = EXECUTION_NO_ID;
	return array_append(&builder->linked->nodes, node) ?: array_append(&builder->rows, row);
}

static void set_operator(
	struct execution_node *node, const struct trace *trace, const struct trace_event *event)
{
	const struct trace_op *op = trace_op(trace, event);

	node->rf_id = EXECUTION_NO_ID;
	node->seq_id = -1;
	if (!op)
		return;
	node->rf_id = op->rf_id == TRACE_NO_ID ? EXECUTION_NO_ID : op->rf_id;
	node->seq_id = op->sequence == TRACE_NO_NUMBER ? -1 : op->sequence;
	node->inputs.values = text_of(trace, op->concrete_inputs);
	node->inputs.shapes = text_of(trace, op->input_dims);
	node->inputs.types = text_of(trace, op->input_types);
}

/* An operator, or a call that launched work outside of any. */
static bool is_node(const struct builder *builder, uint32_t row)
{
	const struct trace_event *event = &builder->trace->events.items[row];
	uint32_t parent = builder->parents[row];

	if (link_is_operator(event))
		return true;
	for (; parent != MODEL_NONE; parent = builder->parents[parent]) {
		if (builder->nodes[parent] != MODEL_NONE)
			return false;
	}
	return link_is_call(event) && builder->launched[row] &&
	       event->duration_ns != TRACE_NO_DURATION;
}

/* Rows are in the order of starts: who called is a node before those that it called. */
static int add_thread(struct builder *builder, uint32_t number)
{
	const struct trace *trace = builder->trace;
	const struct trace_track *track = &trace->tracks.items[number];
	uint64_t root = builder->linked->nodes.count, tid = number + 1ULL;
	int r = add_node(builder, MODEL_NONE,
		(struct execution_node){.name = {thread_name, sizeof(thread_name) - 1},
			.parent = EXECUTION_NO_ID,
			.rf_id = EXECUTION_NO_ID,
			.seq_id = -1,
			.tid = tid});

	for (uint32_t i = 0; r == 0 && i < track->count; i++) {
		uint32_t row = trace->rows.items[track->first + i], parent = builder->parents[row];
		const struct trace_event *event = &trace->events.items[row];
		struct execution_node node = {
			.name = text_of(trace, event->name), .parent = root, .tid = tid};

		if (!is_node(builder, row))
			continue;
		while (parent != MODEL_NONE && builder->nodes[parent] == MODEL_NONE)
			parent = builder->parents[parent];
		if (parent != MODEL_NONE)
			node.parent = builder->nodes[parent];
		set_operator(&node, trace, event);
		builder->nodes[row] = (uint32_t)builder->linked->nodes.count;
		r = add_node(builder, row, node);
	}
	/* A thread without any is none. */
	if (r == 0 && builder->linked->nodes.count == root + 1)
		builder->linked->nodes.count = builder->rows.count = root;
	return r;
}

static int build(struct builder *builder)
{
	int r = builder_init(builder);

	for (uint32_t i = 0; r == 0 && i < builder->trace->tracks.count; i++)
		r = add_thread(builder, i);
	return r ?: execution_trace_index(builder->linked);
}

static int make(struct execution_trace *linked, const struct trace *trace,
	struct chakra_link_result *result, struct errmsg *err)
{
	_cleanup_(builder_done) struct builder builder = {.linked = linked, .trace = trace};
	int r = build(&builder);

	if (r == 0 && linked->nodes.count == 0)
		return errmsg_set(err, -ENODATA,
			"%s has neither operators nor launches of device work: there is nothing to "
			"make an execution trace from; record with sonde's ranges, or "
			"torch.profiler with ProfilerActivity.CPU",
			trace->path);
	r = r ?: chakra_link_rows(linked, trace, builder.rows.items, result);
	return r;
}

int chakra_from_trace(struct execution_trace **ret_linked, const struct trace *trace,
	struct chakra_link_result *ret_result, struct errmsg *err)
{
	_cleanup_execution_trace_ struct execution_trace *linked =
		execution_trace_new(trace->path ?: "");
	int r;

	if (linked)
		linked->schema = (struct execution_text){"1.1.1-chakra.0.0.4", 18};
	r = linked ? make(linked, trace, ret_result, err) : -ENOMEM;
	if (r == -ENOMEM)
		return errmsg_set(err, r, "memory ran out while ordering the trace");
	if (r == 0)
		*ret_linked = TAKE_PTR(linked);
	return r;
}
