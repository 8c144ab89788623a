/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a graph as messages: one after the other, in the order of ids. They are encoded by
 * hand, straight from the trace's texts: of a Megatron rank's 6,119 nodes that is a third of the
 * time that filling and packing messages of protobuf-c took.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/protobuf.h"
#include "chakra/convert/convert.h"
#include "chakra/convert/operations.h"
#include "chakra/convert/tensors.h"
#include "chakra/json_piece.h"
#include "chakra/python_text.h"
#include "model/trace.h"

#define TYPE(name)             CHAKRA_PROTO_MSG__NODE_TYPE__##name
#define STREAM_OF_HOST         0
#define OPERATIONS_OF_COPY     1 /* a simulator divides by it: the bytes decide */
#define OPERATIONS_NOT_KNOWN   1
#define TENSOR_BYTES_NOT_KNOWN 1

/* Field numbers of schema/chakra.proto. */
enum node_field {
	NODE_ID = 1,
	NODE_NAME,
	NODE_TYPE,
	NODE_CTRL_DEPS,
	NODE_DATA_DEPS,
	NODE_START_TIME_MICROS,
	NODE_DURATION_MICROS,
	NODE_INPUTS,
	NODE_OUTPUTS,
	NODE_ATTR,
};

enum { METADATA_ATTR = 2, VALUES = 1, SHAPES, TYPES, ATTRIBUTE_NAME = 1, LIST_VALUES = 1 };

enum attribute_field {
	INT32_VAL = 7,
	INT64_VAL = 9,
	INT64_LIST = 10,
	UINT64_VAL = 13,
	BOOL_VAL = 27,
	STRING_VAL = 29,
};

struct builder {
	const struct chakra_graph *graph;
	struct chakra_convert_options options;
	struct strbuf message;
};

/* Attributes. */

static size_t begin_attribute(struct strbuf *out, uint32_t field, const char *name)
{
	size_t begin = pb_begin(out, field);

	pb_put_bytes(out, ATTRIBUTE_NAME, name, strlen(name));
	return begin;
}

static void add_number(struct builder *builder, const char *name, uint32_t kind, uint64_t value)
{
	size_t begin = begin_attribute(&builder->message, NODE_ATTR, name);

	pb_put_u64(&builder->message, kind, value);
	pb_end(&builder->message, begin);
}

static void add_i64(struct builder *builder, const char *name, int64_t value)
{
	add_number(builder, name, INT64_VAL, (uint64_t)value);
}

static void add_i32(struct builder *builder, const char *name, int64_t value)
{
	add_number(builder, name, INT32_VAL, (uint64_t)(int64_t)(int32_t)value);
}

static void add_u64(struct builder *builder, const char *name, uint64_t value)
{
	add_number(builder, name, UINT64_VAL, value);
}

static void put_text_attribute(
	struct strbuf *out, uint32_t field, const char *name, struct execution_text text)
{
	size_t begin = begin_attribute(out, field, name), string = pb_begin(out, STRING_VAL);

	json_piece_add_text(out, text);
	pb_end(out, string);
	pb_end(out, begin);
}

static void add_text(struct builder *builder, const char *name, struct execution_text text)
{
	put_text_attribute(&builder->message, NODE_ATTR, name, text);
}

static void add_word(struct builder *builder, const char *name, const char *word)
{
	add_text(builder, name, (struct execution_text){word, (uint32_t)strlen(word)});
}

/* A list is begun, filled with pb_put_varint() and ended. */
struct open_list {
	size_t attribute, list, values;
};

static struct open_list begin_list(struct builder *builder, const char *name)
{
	struct open_list list;

	list.attribute = begin_attribute(&builder->message, NODE_ATTR, name);
	list.list = pb_begin(&builder->message, INT64_LIST);
	list.values = pb_begin(&builder->message, LIST_VALUES);
	return list;
}

static void end_list(struct builder *builder, struct open_list list)
{
	pb_end(&builder->message, list.values);
	pb_end(&builder->message, list.list);
	pb_end(&builder->message, list.attribute);
}

/* What chakra_converter writes, in its order. */
static void add_operator(struct builder *builder, const struct execution_node *source)
{
	bool is_host = source->work == MODEL_NONE;
	int64_t stream = STREAM_OF_HOST;

	if (!is_host && builder->graph->trace->works.items[source->work].stream != TRACE_NO_NUMBER)
		stream = builder->graph->trace->works.items[source->work].stream;
	if (source->rf_id != EXECUTION_NO_ID)
		add_i64(builder, "rf_id", (int64_t)source->rf_id);
	add_i64(builder, "fw_parent", (int64_t)source->fw_parent);
	add_i64(builder, "seq_id", source->seq_id);
	add_i64(builder, "scope", (int64_t)source->scope);
	add_i64(builder, "tid", (int64_t)source->tid);
	add_i64(builder, "fw_tid", (int64_t)source->fw_tid);
	add_text(builder, "op_schema", source->op_schema);
	add_number(builder, "is_cpu_op", BOOL_VAL, is_host);
	add_i64(builder, "stream", stream);
}

static void add_times(struct builder *builder, const struct execution_node *source)
{
	if (source->start_ns != TRACE_NO_NUMBER)
		add_i64(builder, "start_ns", source->start_ns);
	if (source->exclusive_ns != TRACE_NO_NUMBER)
		add_i64(builder, "duration_ns", source->exclusive_ns);
}

static void add_size(struct builder *builder, const char *name, const uint32_t size[3])
{
	struct open_list list;

	if (size[0] == 0)
		return;
	list = begin_list(builder, name);
	for (int i = 0; i < 3; i++)
		pb_put_varint(&builder->message, size[i]);
	end_list(builder, list);
}

static void add_work(struct builder *builder, const struct execution_work *work)
{
	if (work->device != TRACE_NO_NUMBER)
		add_i64(builder, "device", work->device);
	if (work->correlation > 0)
		add_u64(builder, "correlation", work->correlation);
	if (work->bytes > 0)
		add_u64(builder, "bytes", work->bytes);
	if (work->graph > 0)
		add_u64(builder, "graph", work->graph);
	if (work->graph_node > 0)
		add_u64(builder, "graph_node", work->graph_node);
	add_size(builder, "grid", work->grid);
	add_size(builder, "block", work->block);
}

/* Communication. */

/* Nothing for an empty list, which means all ranks: the group's size tells them. */
static void add_ranks(struct builder *builder, const struct chakra_collective *collective)
{
	struct json_piece ranks = json_piece_list(collective->ranks);
	struct execution_text element;
	struct open_list list;
	int64_t rank;

	if (!json_piece_next(&ranks, &element))
		return;
	list = begin_list(builder, "pg_ranks");
	do {
		if (json_piece_i64(element, &rank))
			pb_put_varint(&builder->message, (uint64_t)rank);
	} while (json_piece_next(&ranks, &element));
	end_list(builder, list);
}

static void add_collective(struct builder *builder, const struct chakra_collective *collective)
{
	bool is_peer = collective->kind < COLLECTIVE_NONE;

	if (!is_peer)
		add_i64(builder, "comm_type", collective->kind);
	if (collective->has_bytes)
		add_i64(builder, "comm_size", (int64_t)collective->bytes);
	if (collective->group.length > 0 && !execution_text_equals(collective->group, "\"\""))
		add_text(builder, "pg_name", collective->group);
	if (builder->graph->definition->is_plain)
		return;
	if (is_peer && collective->source != TRACE_NO_NUMBER)
		add_i32(builder, "comm_src", collective->source);
	if (is_peer && collective->destination != TRACE_NO_NUMBER)
		add_i32(builder, "comm_dst", collective->destination);
	if (is_peer)
		add_i32(builder, "comm_tag", 0);
	if (collective->description.length > 0)
		add_text(builder, "pg_desc", collective->description);
	if (collective->group_size != TRACE_NO_NUMBER)
		add_i64(builder, "pg_size", collective->group_size);
	add_ranks(builder, collective);
}

/* Arithmetic. */

struct estimate {
	uint64_t operations, bytes; /* 0: not known */
	const char *rule;
};

/*
 * By the operator's tensors. One whose formula is not known, or whose formula stands at another
 * kernel, is one operation for each element of its largest tensor.
 */
static struct estimate estimate_of(const struct execution_node *operator, bool by_formula)
{
	struct tensor_sum inputs = tensor_sum(&operator->inputs);
	struct tensor_sum outputs = tensor_sum(&operator->outputs);
	struct estimate estimate = {.bytes = inputs.bytes + outputs.bytes, .rule = "formula"};

	if (by_formula)
		estimate.operations = operations_of(operator->name, &operator->inputs);
	if (estimate.operations == 0) {
		estimate.operations = outputs.largest ?: inputs.largest;
		estimate.rule = "elements";
	}
	return estimate;
}

/* Device nodes have the tensors of their operator, or none. */
static const struct execution_node *operator_of(
	const struct chakra_graph *graph, uint32_t node, const struct execution_node *source)
{
	uint32_t parent = graph->parents[node];

	return parent == MODEL_NONE ? source : chakra_source(graph, parent);
}

/* A device node has both, since simulators that go by them stop without; see the rule. */
static void add_estimate(struct builder *builder, struct estimate estimate)
{
	if (estimate.operations == 0) {
		estimate.operations = OPERATIONS_NOT_KNOWN;
		estimate.rule = "unknown";
	}
	add_i64(builder, "num_ops", (int64_t)estimate.operations);
	add_word(builder, "num_ops_rule", estimate.rule);
	add_u64(builder, "tensor_size", estimate.bytes ?: TENSOR_BYTES_NOT_KNOWN);
}

static void add_device_arithmetic(struct builder *builder, uint32_t index)
{
	const struct chakra_graph *graph = builder->graph;
	const struct chakra_node *node = &graph->nodes.items[index];
	const struct execution_node *source = chakra_source(graph, index);
	const struct execution_work *work = &graph->trace->works.items[source->work];
	struct estimate estimate = estimate_of(operator_of(graph, index, source), node->is_main);

	if (work->bytes > 0)
		estimate.bytes = work->bytes;
	else if (node->type != TYPE(COMP_NODE) || !execution_text_equals(work->category, "kernel"))
		estimate.bytes = tensor_sum(&source->inputs).tensors > 0
					 ? tensor_sum(&source->outputs).bytes
					 : 0;
	if (node->type != TYPE(COMP_NODE)) {
		add_u64(builder, "tensor_size", estimate.bytes ?: TENSOR_BYTES_NOT_KNOWN);
		return;
	}
	if (!execution_text_equals(work->category, "kernel")) {
		estimate.operations = OPERATIONS_OF_COPY;
		estimate.rule = "copy";
	}
	add_estimate(builder, estimate);
}

static bool is_leaf(const struct chakra_graph *graph, uint32_t node)
{
	return graph->first_child[node] == graph->first_child[node + 1];
}

/* The host's own work: of operators that called no other and launched nothing. */
static void add_host_arithmetic(struct builder *builder, uint32_t index)
{
	const struct execution_node *source = chakra_source(builder->graph, index);
	struct estimate estimate;

	if (!is_leaf(builder->graph, index))
		return;
	estimate = estimate_of(source, true);
	if (estimate.bytes > 0 && estimate.operations > 0)
		add_estimate(builder, estimate);
}

/* Messages. */

/* Control or data dependencies, packed; nothing where there are none. */
static void put_deps(struct builder *builder, const struct chakra_node *node, bool of_calls)
{
	const struct chakra_graph *graph = builder->graph;
	const struct chakra_dep *dep = graph->deps.items + node->first_dep;
	const struct chakra_dep *end = dep + node->dep_count;
	size_t begin = 0;

	for (; dep < end; dep++) {
		if ((dep->kind == CHAKRA_DEP_CALL) != of_calls)
			continue;
		if (begin == 0)
			begin = pb_begin(
				&builder->message, of_calls ? NODE_CTRL_DEPS : NODE_DATA_DEPS);
		pb_put_varint(&builder->message, chakra_source(graph, dep->on)->id);
	}
	if (begin > 0)
		pb_end(&builder->message, begin);
}

static void put_list(struct strbuf *out, uint32_t field, struct execution_text list)
{
	size_t begin = pb_begin(out, field);

	python_text_add(out, list);
	pb_end(out, begin);
}

static void put_values(
	struct builder *builder, uint32_t field, const struct execution_values *values)
{
	size_t begin = pb_begin(&builder->message, field);

	put_list(&builder->message, VALUES, values->values);
	put_list(&builder->message, SHAPES, values->shapes);
	put_list(&builder->message, TYPES, values->types);
	pb_end(&builder->message, begin);
}

static void put_name(struct builder *builder, struct execution_text name)
{
	size_t begin;

	if (name.length == 0)
		return;
	begin = pb_begin(&builder->message, NODE_NAME);
	json_piece_add_text(&builder->message, name);
	pb_end(&builder->message, begin);
}

/* As protobuf wants it of numbers: 0 is what is not written. */
static void put_number(struct builder *builder, uint32_t field, uint64_t value)
{
	if (value > 0)
		pb_put_u64(&builder->message, field, value);
}

static uint64_t duration_us(const struct builder *builder, const struct execution_node *source)
{
	if (source->exclusive_ns == TRACE_NO_NUMBER || source->exclusive_ns < 0)
		return 0;
	return builder->graph->definition->duration_us(source);
}

static uint64_t start_us(const struct builder *builder, const struct execution_node *source)
{
	if (builder->graph->definition->is_plain || source->start_ns == TRACE_NO_NUMBER ||
		source->start_ns < 0)
		return 0;
	return (uint64_t)source->start_ns / NS_PER_US;
}

/* What only plain files lack. */
static void add_more(struct builder *builder, uint32_t index)
{
	const struct chakra_node *node = &builder->graph->nodes.items[index];
	const struct execution_node *source = chakra_source(builder->graph, index);
	bool is_device = source->work != MODEL_NONE;

	add_times(builder, source);
	if (is_device)
		add_work(builder, &builder->graph->trace->works.items[source->work]);
	if (is_device && node->collective == MODEL_NONE)
		add_device_arithmetic(builder, index);
	else if (!is_device && node->type == TYPE(COMP_NODE))
		add_host_arithmetic(builder, index);
}

/* Fields in the order of their numbers, as all writers have them. */
static void build_node(struct builder *builder, uint32_t index)
{
	const struct chakra_graph *graph = builder->graph;
	const struct chakra_node *node = &graph->nodes.items[index];
	const struct execution_node *source = chakra_source(graph, index);

	strbuf_clear(&builder->message);
	put_number(builder, NODE_ID, source->id);
	put_name(builder, source->name);
	put_number(builder, NODE_TYPE, node->type);
	put_deps(builder, node, true);
	put_deps(builder, node, false);
	put_number(builder, NODE_START_TIME_MICROS, start_us(builder, source));
	put_number(builder, NODE_DURATION_MICROS, duration_us(builder, source));
	put_values(builder, NODE_INPUTS, &source->inputs);
	put_values(builder, NODE_OUTPUTS, &source->outputs);
	add_operator(builder, source);
	if (node->collective != MODEL_NONE)
		add_collective(builder, &graph->collectives.items[node->collective]);
	if (!graph->definition->is_plain)
		add_more(builder, index);
}

static void put_metadata_number(struct strbuf *out, const char *name, uint32_t kind, uint64_t value)
{
	size_t begin = begin_attribute(out, METADATA_ATTR, name);

	pb_put_u64(out, kind, value);
	pb_end(out, begin);
}

/* As the file says of itself. */
static void build_metadata(struct builder *builder)
{
	const struct execution_trace *trace = builder->graph->trace;
	struct strbuf *out = &builder->message;

	put_text_attribute(out, METADATA_ATTR, "schema", trace->schema);
	put_metadata_number(out, "pid", UINT64_VAL, trace->pid);
	put_text_attribute(out, METADATA_ATTR, "time", trace->time);
	put_metadata_number(out, "start_ts", UINT64_VAL, trace->start_ts);
	if (trace->has_finish)
		put_metadata_number(out, "finish_ts", UINT64_VAL, trace->finish_ts);
	if (builder->graph->definition->is_plain)
		return;
	if (builder->options.has_rank)
		put_metadata_number(out, "rank", INT64_VAL, builder->options.rank);
	if (builder->options.left_out > 0)
		put_metadata_number(out, "left_out", UINT64_VAL, builder->options.left_out);
}

int chakra_write(const struct chakra_graph *graph, const struct chakra_convert_options *options,
	struct et_writer *writer)
{
	struct builder builder = {.graph = graph};
	int r;

	if (options)
		builder.options = *options;
	build_metadata(&builder);
	et_write_message(writer, builder.message.data, builder.message.length);
	for (uint32_t i = 0; i < graph->nodes.count && strbuf_status(&builder.message) == 0; i++) {
		if (graph->nodes.items[i].is_removed)
			continue;
		build_node(&builder, i);
		et_write_message(writer, builder.message.data, builder.message.length);
	}
	r = strbuf_status(&builder.message);
	strbuf_done(&builder.message);
	return r;
}
