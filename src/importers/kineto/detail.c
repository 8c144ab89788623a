/* SPDX-License-Identifier: Apache-2.0 */
/* What the arguments of an event say, into the row of its kind. */
#include "importers/kineto/parser.h"

#include <errno.h>
#include <string.h>

#define OP_BITS                                                                                    \
	(KINETO_BIT(KINETO_RECORD_FUNCTION_ID) | KINETO_BIT(KINETO_SEQUENCE_NUMBER) |              \
		KINETO_BIT(KINETO_FORWARD_THREAD) | KINETO_BIT(KINETO_EV_IDX) |                    \
		KINETO_BIT(KINETO_PYTHON_ID) | KINETO_BIT(KINETO_PYTHON_PARENT_ID) |               \
		KINETO_BIT(KINETO_PYTHON_MODULE_ID))
#define SHAPE_BITS                                                                                 \
	(KINETO_BIT(KINETO_INPUT_DIMS) | KINETO_BIT(KINETO_INPUT_TYPES) |                          \
		KINETO_BIT(KINETO_INPUT_STRIDES) | KINETO_BIT(KINETO_CONCRETE_INPUTS))
#define WORK_BITS                                                                                  \
	(KINETO_BIT(KINETO_DEVICE) | KINETO_BIT(KINETO_CONTEXT) | KINETO_BIT(KINETO_STREAM) |      \
		KINETO_BIT(KINETO_BYTES) | KINETO_BIT(KINETO_GRID) | KINETO_BIT(KINETO_BLOCK) |    \
		KINETO_BIT(KINETO_REGISTERS) | KINETO_BIT(KINETO_SHARED_MEMORY) |                  \
		KINETO_BIT(KINETO_GRAPH) | KINETO_BIT(KINETO_GRAPH_NODE) |                         \
		KINETO_BIT(KINETO_QUEUED) | KINETO_BIT(KINETO_SYNC_KIND) |                         \
		KINETO_BIT(KINETO_WAIT_STREAM) | KINETO_BIT(KINETO_WAIT_EVENT) |                   \
		KINETO_BIT(KINETO_WAIT_CORRELATION))
#define MEMORY_BITS                                                                                \
	(KINETO_BIT(KINETO_MEMORY_ADDRESS) | KINETO_BIT(KINETO_MEMORY_BYTES) |                     \
		KINETO_BIT(KINETO_TOTAL_ALLOCATED) | KINETO_BIT(KINETO_TOTAL_RESERVED) |           \
		KINETO_BIT(KINETO_DEVICE_TYPE) | KINETO_BIT(KINETO_DEVICE_ID))
/* Any of these makes a collective; "dtype" and "Seq" alone do not. */
#define COLLECTIVE_BITS                                                                            \
	(KINETO_BIT(KINETO_COLLECTIVE_NAME) | KINETO_BIT(KINETO_IN_ELEMENTS) |                     \
		KINETO_BIT(KINETO_OUT_ELEMENTS) | KINETO_BIT(KINETO_GROUP_SIZE) |                  \
		KINETO_BIT(KINETO_GROUP_NAME) | KINETO_BIT(KINETO_GROUP_DESCRIPTION) |             \
		KINETO_BIT(KINETO_GROUP_RANKS) | KINETO_BIT(KINETO_IN_SPLIT) |                     \
		KINETO_BIT(KINETO_OUT_SPLIT) | KINETO_BIT(KINETO_SOURCE_RANK) |                    \
		KINETO_BIT(KINETO_DESTINATION_RANK) | KINETO_BIT(KINETO_COMMUNICATOR))

static int take_string(struct kineto_parser *parser, enum kineto_argument id, uint32_t *ret_string)
{
	const struct json_text *value = kineto_take(&parser->arguments, id);

	return value ? kineto_add_string(parser, value, ret_string) : 0;
}

static int take_json(struct kineto_parser *parser, enum kineto_argument id, uint32_t *ret_string)
{
	const struct json_text *value = kineto_take(&parser->arguments, id);

	return value ? kineto_add_json(parser, value, ret_string) : 0;
}

static void take_u32(struct kineto_parser *parser, enum kineto_argument id, uint32_t *ret_value)
{
	const uint64_t present = parser->arguments.present;
	uint64_t value;

	if (!kineto_take_u64(&parser->arguments, id, &value))
		return;
	if (value <= UINT32_MAX)
		*ret_value = (uint32_t)value;
	else
		parser->arguments.present = present;
}

static int add_collective(struct kineto_parser *parser, uint32_t *ret_collective)
{
	struct kineto_arguments *arguments = &parser->arguments;
	struct trace_collective row = {
		.in_elements = TRACE_NO_NUMBER,
		.out_elements = TRACE_NO_NUMBER,
		.group_size = TRACE_NO_NUMBER,
		.source = TRACE_NO_NUMBER,
		.destination = TRACE_NO_NUMBER,
		.sequence = TRACE_NO_NUMBER,
	};

	*ret_collective = MODEL_NONE;
	if (!(arguments->present & COLLECTIVE_BITS))
		return 0;
	kineto_take_i64(arguments, KINETO_IN_ELEMENTS, &row.in_elements);
	kineto_take_i64(arguments, KINETO_OUT_ELEMENTS, &row.out_elements);
	kineto_take_i64(arguments, KINETO_GROUP_SIZE, &row.group_size);
	kineto_take_i64(arguments, KINETO_SOURCE_RANK, &row.source);
	kineto_take_i64(arguments, KINETO_DESTINATION_RANK, &row.destination);
	kineto_take_i64(arguments, KINETO_COLLECTIVE_SEQUENCE, &row.sequence);
	kineto_take_u64(arguments, KINETO_COMMUNICATOR, &row.communicator);
	if (take_string(parser, KINETO_COLLECTIVE_NAME, &row.name) < 0 ||
		take_string(parser, KINETO_COLLECTIVE_DTYPE, &row.dtype) < 0 ||
		take_string(parser, KINETO_GROUP_NAME, &row.group_name) < 0 ||
		take_string(parser, KINETO_GROUP_DESCRIPTION, &row.group_description) < 0 ||
		take_string(parser, KINETO_GROUP_RANKS, &row.group_ranks) < 0 ||
		take_string(parser, KINETO_IN_SPLIT, &row.in_split) < 0 ||
		take_string(parser, KINETO_OUT_SPLIT, &row.out_split) < 0)
		return -ENOMEM;
	*ret_collective = (uint32_t)parser->trace->collectives.count;
	return array_append(&parser->trace->collectives, row);
}

/* What sonde writes with ranges and steps of recordings, and what reports need of them. */
#define ANNOTATION_BITS                                                                            \
	(KINETO_BIT(KINETO_RANGE_END) | KINETO_BIT(KINETO_NAME) | KINETO_BIT(KINETO_BYTES) |       \
		KINETO_BIT(KINETO_MEMORY_BYTES))

static bool is_window(const struct kineto_parser *parser, const struct trace_event *event)
{
	return event->category == TRACE_OTHER &&
	       strcmp(trace_text(parser->trace, event->category_name), TRACE_WINDOW_CATEGORY) == 0;
}

/* Of annotations those, of windows all, of allocations what sonde writes of recordings. */
static void keep_annotation(struct kineto_parser *parser, const struct trace_event *event)
{
	bool is_annotation = event->category == TRACE_USER_ANNOTATION &&
			     (parser->arguments.present & ANNOTATION_BITS);

	bool has_stack = event->category == TRACE_CPU_INSTANT &&
			 kineto_has(&parser->arguments, KINETO_MEMORY_STACK);

	parser->keep_others =
		parser->keep_arguments || is_annotation || has_stack || is_window(parser, event);
}

/* What was not taken, when it is to be kept. */
static int add_others(struct kineto_parser *parser, uint32_t *ret_others)
{
	struct kineto_arguments *arguments = &parser->arguments;
	_cleanup_strbuf_ struct strbuf text = {0};

	*ret_others = 0;
	if (!parser->keep_others || (!arguments->present && !arguments->others.count))
		return 0;
	kineto_arguments_rest(arguments, &text);
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	return kineto_add_json(
		parser, &(struct json_text){.bytes = text.data, .length = text.length}, ret_others);
}

static int take_op_texts(struct kineto_parser *parser, struct trace_op *op)
{
	if (take_json(parser, KINETO_INPUT_DIMS, &op->input_dims) < 0 ||
		take_json(parser, KINETO_INPUT_TYPES, &op->input_types) < 0 ||
		take_json(parser, KINETO_INPUT_STRIDES, &op->input_strides) < 0 ||
		take_json(parser, KINETO_CONCRETE_INPUTS, &op->concrete_inputs) < 0)
		return -ENOMEM;
	if (!parser->keep_arguments)
		return 0;
	if (take_json(parser, KINETO_CALL_STACK, &op->call_stack) < 0 ||
		take_json(parser, KINETO_MODULE_HIERARCHY, &op->module_hierarchy) < 0)
		return -ENOMEM;
	return 0;
}

/* What ROCm's calls launch. It stays among the others, too: files are written again with it. */
static int read_kernel(struct kineto_parser *parser, uint32_t *ret_kernel)
{
	const uint64_t present = parser->arguments.present;
	int r = take_string(parser, KINETO_KERNEL, ret_kernel);

	parser->arguments.present = present;
	return r;
}

static int add_op(struct kineto_parser *parser, uint32_t *ret_detail)
{
	struct kineto_arguments *arguments = &parser->arguments;
	struct trace_op op = trace_no_op;

	if (!(arguments->present &
		    (OP_BITS | SHAPE_BITS | COLLECTIVE_BITS | KINETO_BIT(KINETO_KERNEL))) &&
		(!parser->keep_others || (!arguments->present && !arguments->others.count)))
		return 0;
	kineto_take_u64(arguments, KINETO_RECORD_FUNCTION_ID, &op.rf_id);
	kineto_take_i64(arguments, KINETO_SEQUENCE_NUMBER, &op.sequence);
	kineto_take_i64(arguments, KINETO_FORWARD_THREAD, &op.forward_thread);
	kineto_take_i64(arguments, KINETO_EV_IDX, &op.ev_idx);
	kineto_take_i64(arguments, KINETO_PYTHON_ID, &op.python_id);
	kineto_take_i64(arguments, KINETO_PYTHON_PARENT_ID, &op.python_parent_id);
	kineto_take_i64(arguments, KINETO_PYTHON_MODULE_ID, &op.python_module_id);
	if (add_collective(parser, &op.collective) < 0 || take_op_texts(parser, &op) < 0 ||
		read_kernel(parser, &op.kernel) < 0 || add_others(parser, &op.others) < 0)
		return -ENOMEM;
	*ret_detail = (uint32_t)parser->trace->ops.count;
	return array_append(&parser->trace->ops, op);
}

static int add_work(struct kineto_parser *parser, uint32_t *ret_detail)
{
	struct kineto_arguments *arguments = &parser->arguments;
	struct trace_work work = trace_no_work;

	if (!(arguments->present & (WORK_BITS | COLLECTIVE_BITS)) &&
		(!parser->keep_arguments || (!arguments->present && !arguments->others.count)))
		return 0;
	kineto_take_i64(arguments, KINETO_DEVICE, &work.device);
	kineto_take_i64(arguments, KINETO_CONTEXT, &work.context);
	kineto_take_i64(arguments, KINETO_STREAM, &work.stream);
	kineto_take_u64(arguments, KINETO_BYTES, &work.bytes);
	if (arguments->present & KINETO_BIT(KINETO_BANDWIDTH))
		kineto_double(&arguments->members[KINETO_BANDWIDTH].value, &work.bandwidth_gbps);
	kineto_take_dimensions(arguments, KINETO_GRID, work.grid);
	kineto_take_dimensions(arguments, KINETO_BLOCK, work.block);
	take_u32(parser, KINETO_REGISTERS, &work.registers);
	take_u32(parser, KINETO_SHARED_MEMORY, &work.shared_bytes);
	kineto_take_u64(arguments, KINETO_GRAPH, &work.graph);
	kineto_take_u64(arguments, KINETO_GRAPH_NODE, &work.graph_node);
	kineto_take_ns(arguments, KINETO_QUEUED, &work.queued_ns);
	kineto_take_i64(arguments, KINETO_WAIT_STREAM, &work.wait_stream);
	kineto_take_i64(arguments, KINETO_WAIT_EVENT, &work.wait_event);
	kineto_take_u64(arguments, KINETO_WAIT_CORRELATION, &work.wait_correlation);
	if (take_string(parser, KINETO_SYNC_KIND, &work.sync_kind) < 0 ||
		add_collective(parser, &work.collective) < 0 ||
		add_others(parser, &work.others) < 0)
		return -ENOMEM;
	*ret_detail = (uint32_t)parser->trace->works.count;
	return array_append(&parser->trace->works, work);
}

static int add_memory(struct kineto_parser *parser, uint32_t *ret_detail)
{
	struct kineto_arguments *arguments = &parser->arguments;
	struct trace_memory memory = trace_no_memory;

	if (!(arguments->present & MEMORY_BITS) &&
		(!parser->keep_arguments || (!arguments->present && !arguments->others.count)))
		return 0;
	kineto_take_u64(arguments, KINETO_MEMORY_ADDRESS, &memory.address);
	kineto_take_i64(arguments, KINETO_MEMORY_BYTES, &memory.bytes);
	kineto_take_i64(arguments, KINETO_TOTAL_ALLOCATED, &memory.total_allocated);
	kineto_take_i64(arguments, KINETO_TOTAL_RESERVED, &memory.total_reserved);
	kineto_take_i64(arguments, KINETO_DEVICE_TYPE, &memory.device_type);
	kineto_take_i64(arguments, KINETO_DEVICE_ID, &memory.device_id);
	if (add_others(parser, &memory.others) < 0)
		return -ENOMEM;
	*ret_detail = (uint32_t)parser->trace->memory.count;
	return array_append(&parser->trace->memory, memory);
}

/* It stays among the others: files are written again with the name that they had. */
static void read_xla_correlation(struct kineto_arguments *arguments, struct trace_event *event)
{
	const uint64_t present = arguments->present;

	kineto_take_u64(arguments, KINETO_XLA_CORRELATION, &event->correlation);
	arguments->present = present;
}

int kineto_add_detail(struct kineto_parser *parser, struct trace_event *event)
{
	struct kineto_arguments *arguments = &parser->arguments;

	event->detail = MODEL_NONE;
	event->external_id = TRACE_NO_ID;
	if (!arguments->present && !arguments->others.count)
		return 0;
	kineto_take_u64(arguments, KINETO_EXTERNAL_ID, &event->external_id);
	if (!kineto_take_u64(arguments, KINETO_CORRELATION, &event->correlation))
		read_xla_correlation(arguments, event);
	keep_annotation(parser, event);
	switch ((enum trace_category)event->category) {
	case TRACE_KERNEL:
	case TRACE_MEMCPY:
	case TRACE_MEMSET:
	case TRACE_GPU_ANNOTATION:
	case TRACE_SYNC:
		return add_work(parser, &event->detail);
	case TRACE_CPU_INSTANT:
		return add_memory(parser, &event->detail);
	default:
		return add_op(parser, &event->detail);
	}
}
