/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a graph as messages: one after the other, in the order of ids. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chakra/convert.h"
#include "chakra/json_piece.h"
#include "chakra/operations.h"
#include "chakra/python_text.h"
#include "chakra/tensors.h"
#include "model/trace.h"

enum { MAX_ATTRIBUTES = 40, MAX_TEXTS = 20, MAX_LISTS = 3 };

#define VALUE(kind)            CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_##kind
#define TYPE(name)             CHAKRA_PROTO_MSG__NODE_TYPE__##name
#define STREAM_OF_HOST         0
#define OPERATIONS_OF_COPY     1 /* a simulator divides by it: the bytes decide */
#define OPERATIONS_NOT_KNOWN   1
#define TENSOR_BYTES_NOT_KNOWN 1

/* One message, whose parts are used again for the next. */
struct builder {
	const struct chakra_graph *graph;
	struct chakra_convert_options options;
	et_node node;
	et_values inputs, outputs;
	et_attribute attributes[MAX_ATTRIBUTES];
	et_attribute *attribute_list[MAX_ATTRIBUTES];
	ChakraProtoMsg__Int64List lists[MAX_LISTS];
	size_t list_count;
	int64_t dimensions[2][3]; /* of grid and block */
	ARRAY_OF(int64_t) ranks;
	ARRAY_OF(uint64_t) deps;
	struct strbuf texts[MAX_TEXTS];
	size_t text_count;
	int error; /* the first */
};

/* Texts. */

static struct strbuf *begin_text(struct builder *builder)
{
	struct strbuf *text = &builder->texts[builder->text_count++];

	strbuf_clear(text);
	return text;
}

/* Nothing is added any more: it stays where it is until the next node. */
static char *end_text(struct builder *builder, const struct strbuf *text)
{
	if (builder->error == 0)
		builder->error = strbuf_status(text);
	return (char *)strbuf_cstr(text);
}

static char *plain_text(struct builder *builder, struct execution_text text)
{
	struct strbuf *out = begin_text(builder);

	json_piece_add_text(out, text);
	return end_text(builder, out);
}

static char *list_text(struct builder *builder, struct execution_text list)
{
	struct strbuf *out = begin_text(builder);

	python_text_add(out, list);
	return end_text(builder, out);
}

/* Attributes. */

static et_attribute *add(struct builder *builder, const char *name,
	ChakraProtoMsg__AttributeProto__ValueCase value_case)
{
	et_attribute *attribute = &builder->attributes[builder->node.n_attr];

	chakra_proto_msg__attribute_proto__init(attribute);
	attribute->name = (char *)name;
	attribute->value_case = value_case;
	builder->attribute_list[builder->node.n_attr++] = attribute;
	return attribute;
}

static void add_i64(struct builder *builder, const char *name, int64_t value)
{
	add(builder, name, VALUE(INT64_VAL))->int64_val = value;
}

static void add_i32(struct builder *builder, const char *name, int64_t value)
{
	add(builder, name, VALUE(INT32_VAL))->int32_val = (int32_t)value;
}

static void add_u64(struct builder *builder, const char *name, uint64_t value)
{
	add(builder, name, VALUE(UINT64_VAL))->uint64_val = value;
}

static void add_text(struct builder *builder, const char *name, struct execution_text text)
{
	add(builder, name, VALUE(STRING_VAL))->string_val = plain_text(builder, text);
}

static void add_word(struct builder *builder, const char *name, const char *word)
{
	add(builder, name, VALUE(STRING_VAL))->string_val = (char *)word;
}

static void add_list(struct builder *builder, const char *name, int64_t *values, size_t count)
{
	ChakraProtoMsg__Int64List *list = &builder->lists[builder->list_count++];

	chakra_proto_msg__int64_list__init(list);
	list->values = values;
	list->n_values = count;
	add(builder, name, VALUE(INT64_LIST))->int64_list = list;
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
	add(builder, "is_cpu_op", VALUE(BOOL_VAL))->bool_val = is_host;
	add_i64(builder, "stream", stream);
}

static void add_times(struct builder *builder, const struct execution_node *source)
{
	if (source->start_ns != TRACE_NO_NUMBER)
		add_i64(builder, "start_ns", source->start_ns);
	if (source->exclusive_ns != TRACE_NO_NUMBER)
		add_i64(builder, "duration_ns", source->exclusive_ns);
}

static void add_size(
	struct builder *builder, const char *name, const uint32_t size[3], int64_t values[3])
{
	if (size[0] == 0)
		return;
	for (int i = 0; i < 3; i++)
		values[i] = size[i];
	add_list(builder, name, values, 3);
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
	add_size(builder, "grid", work->grid, builder->dimensions[0]);
	add_size(builder, "block", work->block, builder->dimensions[1]);
}

/* Communication. */

/* A list of numbers; "[]" of a group whose size is known means all ranks. */
static void add_ranks(struct builder *builder, const struct chakra_collective *collective)
{
	struct json_piece list = json_piece_list(collective->ranks);
	struct execution_text element;
	int64_t rank;

	array_clear(&builder->ranks);
	while (builder->error == 0 && json_piece_next(&list, &element)) {
		if (json_piece_i64(element, &rank))
			builder->error = array_append(&builder->ranks, rank);
	}
	if (builder->ranks.count > 0)
		add_list(builder, "pg_ranks", builder->ranks.items, builder->ranks.count);
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
	if (builder->options.compat)
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
 * Tensors of the operator that launched it. An operator whose formula is not known is one
 * operation for each element of its largest tensor.
 */
static struct estimate estimate_of(const struct chakra_graph *graph, const struct chakra_node *node,
	const struct execution_node *operator)
{
	struct tensor_sum inputs = tensor_sum(&operator->inputs);
	struct tensor_sum outputs = tensor_sum(&operator->outputs);
	struct estimate estimate = {.bytes = inputs.bytes + outputs.bytes};

	if (node->is_main ||
		chakra_source(graph, (uint32_t)(node - graph->nodes.items))->work == MODEL_NONE)
		estimate.operations =
			operations_of(operator->name, &operator->inputs, &operator->outputs);
	estimate.rule = estimate.operations > 0 ? "formula" : "elements";
	if (estimate.operations == 0)
		estimate.operations = outputs.largest ?: inputs.largest;
	return estimate;
}

static bool has_tensors(const struct execution_node *node)
{
	return tensor_sum(&node->inputs).tensors > 0 || tensor_sum(&node->outputs).tensors > 0;
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
	struct estimate estimate = estimate_of(graph, node, operator_of(graph, index, source));

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

	if (!is_leaf(builder->graph, index) || !has_tensors(source))
		return;
	estimate = estimate_of(builder->graph, &builder->graph->nodes.items[index], source);
	if (execution_text_equals(source->name, "record_param_comms"))
		return;
	add_estimate(builder, estimate);
}

/* Messages. */

static void set_deps(struct builder *builder, const struct chakra_node *node)
{
	const struct chakra_graph *graph = builder->graph;
	size_t calls = 0;

	array_clear(&builder->deps);
	for (uint32_t i = 0; builder->error == 0 && i < node->dep_count; i++) {
		const struct chakra_dep *dep = &graph->deps.items[node->first_dep + i];

		calls += dep->kind == CHAKRA_DEP_CALL;
		builder->error = array_append(&builder->deps, chakra_source(graph, dep->on)->id);
	}
	builder->node.ctrl_deps = builder->deps.items;
	builder->node.n_ctrl_deps = calls;
	builder->node.data_deps = builder->deps.items + calls;
	builder->node.n_data_deps = builder->deps.count - calls;
}

static void set_values(
	struct builder *builder, et_values *message, const struct execution_values *values)
{
	chakra_proto_msg__ioinfo__init(message);
	message->values = list_text(builder, values->values);
	message->shapes = list_text(builder, values->shapes);
	message->types = list_text(builder, values->types);
}

/* Whole microseconds: cut by chakra_converter, which takes optimizers for nothing; else rounded. */
static uint64_t duration_us(const struct builder *builder, const struct execution_node *source)
{
	static const char optimizer[] = "Optimizer.step";
	int64_t ns = source->exclusive_ns;

	if (ns == TRACE_NO_NUMBER || ns < 0)
		return 0;
	if (!builder->options.compat)
		return ((uint64_t)ns + NS_PER_US / 2) / NS_PER_US;
	if (source->name.length > 0 &&
		memmem(source->name.bytes, source->name.length, optimizer, strlen(optimizer)))
		return 0;
	return (uint64_t)ns / NS_PER_US;
}

static void build_node(struct builder *builder, uint32_t index)
{
	const struct chakra_graph *graph = builder->graph;
	const struct chakra_node *node = &graph->nodes.items[index];
	const struct execution_node *source = chakra_source(graph, index);
	bool is_device = source->work != MODEL_NONE;

	chakra_proto_msg__node__init(&builder->node);
	builder->text_count = builder->list_count = 0;
	builder->node.id = source->id;
	builder->node.name = plain_text(builder, source->name);
	builder->node.type = (ChakraProtoMsg__NodeType)node->type;
	builder->node.duration_micros = duration_us(builder, source);
	builder->node.attr = builder->attribute_list;
	set_deps(builder, node);
	set_values(builder, &builder->inputs, &source->inputs);
	set_values(builder, &builder->outputs, &source->outputs);
	builder->node.inputs = &builder->inputs;
	builder->node.outputs = &builder->outputs;
	add_operator(builder, source);
	if (node->collective != MODEL_NONE)
		add_collective(builder, &graph->collectives.items[node->collective]);
	if (builder->options.compat)
		return;
	if (source->start_ns != TRACE_NO_NUMBER && source->start_ns > 0)
		builder->node.start_time_micros = (uint64_t)source->start_ns / NS_PER_US;
	add_times(builder, source);
	if (is_device)
		add_work(builder, &graph->trace->works.items[source->work]);
	if (is_device && node->collective == MODEL_NONE)
		add_device_arithmetic(builder, index);
	else if (node->type == TYPE(COMP_NODE) && !is_device)
		add_host_arithmetic(builder, index);
}

/* As the file says of itself. */
static void write_metadata(struct builder *builder, struct et_writer *writer)
{
	const struct execution_trace *trace = builder->graph->trace;
	et_metadata metadata = CHAKRA_PROTO_MSG__GLOBAL_METADATA__INIT;

	chakra_proto_msg__node__init(&builder->node);
	builder->text_count = 0;
	add_text(builder, "schema", trace->schema);
	add_u64(builder, "pid", trace->pid);
	add_text(builder, "time", trace->time);
	add_u64(builder, "start_ts", trace->start_ts);
	if (trace->has_finish)
		add_u64(builder, "finish_ts", trace->finish_ts);
	if (!builder->options.compat && builder->options.has_rank)
		add_i64(builder, "rank", builder->options.rank);
	metadata.attr = builder->attribute_list;
	metadata.n_attr = builder->node.n_attr;
	et_write_metadata(writer, &metadata);
}

static struct builder *builder_free(struct builder *builder)
{
	for (size_t i = 0; builder && i < MAX_TEXTS; i++)
		strbuf_done(&builder->texts[i]);
	if (builder) {
		array_done(&builder->ranks);
		array_done(&builder->deps);
	}
	free(builder);
	return NULL;
}

int chakra_write(const struct chakra_graph *graph, const struct chakra_convert_options *options,
	struct et_writer *writer)
{
	struct builder *builder = calloc(1, sizeof(*builder));
	int r = builder ? 0 : -ENOMEM;

	if (builder) {
		builder->graph = graph;
		if (options)
			builder->options = *options;
		write_metadata(builder, writer);
	}
	for (uint32_t i = 0; r == 0 && i < graph->nodes.count; i++) {
		if (graph->nodes.items[i].is_removed)
			continue;
		build_node(builder, i);
		r = builder->error;
		if (r == 0)
			et_write_node(writer, &builder->node);
	}
	builder_free(builder);
	return r;
}
