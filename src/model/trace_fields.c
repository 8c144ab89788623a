/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_fields.h"

#include <stdlib.h>

/* A member of a struct; its value `none` means that it is not known. */
struct member {
	uint8_t field, size;
	uint16_t offset;
	uint64_t none;
};

#define MEMBER(field_, type, name, none_)                                                          \
	{                                                                                          \
		.field = (field_), .size = sizeof(((struct type *)0)->name),                       \
		.offset = offsetof(struct type, name), .none = (none_)                             \
	}
#define NUMBER(field_, type, name) MEMBER(field_, type, name, (uint64_t)TRACE_NO_NUMBER)
#define ID(field_, type, name)     MEMBER(field_, type, name, TRACE_NO_ID)
/* Counts, sizes and strings. */
#define COUNT(field_, type, name) MEMBER(field_, type, name, 0)

static const struct member event_members[] = {
	ID(ROW_EXTERNAL_ID, trace_event, external_id),
	COUNT(ROW_CORRELATION, trace_event, correlation),
};

static const struct member op_members[] = {
	ID(ROW_RF_ID, trace_op, rf_id),
	NUMBER(ROW_EV_IDX, trace_op, ev_idx),
	NUMBER(ROW_SEQUENCE, trace_op, sequence),
	NUMBER(ROW_FORWARD_THREAD, trace_op, forward_thread),
	NUMBER(ROW_PYTHON_ID, trace_op, python_id),
	NUMBER(ROW_PYTHON_PARENT_ID, trace_op, python_parent_id),
	NUMBER(ROW_PYTHON_MODULE_ID, trace_op, python_module_id),
	COUNT(ROW_INPUT_DIMS, trace_op, input_dims),
	COUNT(ROW_INPUT_TYPES, trace_op, input_types),
	COUNT(ROW_INPUT_STRIDES, trace_op, input_strides),
	COUNT(ROW_CONCRETE_INPUTS, trace_op, concrete_inputs),
	COUNT(ROW_CALL_STACK, trace_op, call_stack),
	COUNT(ROW_MODULE_HIERARCHY, trace_op, module_hierarchy),
	COUNT(ROW_OTHERS, trace_op, others),
};

static const struct member work_members[] = {
	NUMBER(ROW_DEVICE, trace_work, device),
	NUMBER(ROW_CONTEXT, trace_work, context),
	NUMBER(ROW_STREAM, trace_work, stream),
	COUNT(ROW_BYTES, trace_work, bytes),
	COUNT(ROW_GRID, trace_work, grid[0]),
	COUNT(ROW_GRID + 1, trace_work, grid[1]),
	COUNT(ROW_GRID + 2, trace_work, grid[2]),
	COUNT(ROW_BLOCK, trace_work, block[0]),
	COUNT(ROW_BLOCK + 1, trace_work, block[1]),
	COUNT(ROW_BLOCK + 2, trace_work, block[2]),
	COUNT(ROW_REGISTERS, trace_work, registers),
	COUNT(ROW_SHARED_BYTES, trace_work, shared_bytes),
	COUNT(ROW_GRAPH, trace_work, graph),
	COUNT(ROW_GRAPH_NODE, trace_work, graph_node),
	NUMBER(ROW_QUEUED, trace_work, queued_ns),
	COUNT(ROW_SYNC_KIND, trace_work, sync_kind),
	NUMBER(ROW_WAIT_STREAM, trace_work, wait_stream),
	NUMBER(ROW_WAIT_EVENT, trace_work, wait_event),
	COUNT(ROW_WAIT_CORRELATION, trace_work, wait_correlation),
	COUNT(ROW_OTHERS, trace_work, others),
};

static const struct member memory_members[] = {
	COUNT(ROW_ADDRESS, trace_memory, address),
	NUMBER(ROW_MEMORY_BYTES, trace_memory, bytes),
	NUMBER(ROW_TOTAL_ALLOCATED, trace_memory, total_allocated),
	NUMBER(ROW_TOTAL_RESERVED, trace_memory, total_reserved),
	NUMBER(ROW_DEVICE_TYPE, trace_memory, device_type),
	NUMBER(ROW_DEVICE_ID, trace_memory, device_id),
	COUNT(ROW_OTHERS, trace_memory, others),
};

static const struct member collective_members[] = {
	COUNT(ROW_COLLECTIVE_NAME, trace_collective, name),
	COUNT(ROW_DTYPE, trace_collective, dtype),
	NUMBER(ROW_IN_ELEMENTS, trace_collective, in_elements),
	NUMBER(ROW_OUT_ELEMENTS, trace_collective, out_elements),
	NUMBER(ROW_GROUP_SIZE, trace_collective, group_size),
	COUNT(ROW_GROUP_NAME, trace_collective, group_name),
	COUNT(ROW_GROUP_DESCRIPTION, trace_collective, group_description),
	COUNT(ROW_GROUP_RANKS, trace_collective, group_ranks),
	COUNT(ROW_IN_SPLIT, trace_collective, in_split),
	COUNT(ROW_OUT_SPLIT, trace_collective, out_split),
	NUMBER(ROW_SOURCE, trace_collective, source),
	NUMBER(ROW_DESTINATION, trace_collective, destination),
	NUMBER(ROW_COLLECTIVE_SEQUENCE, trace_collective, sequence),
	COUNT(ROW_COMMUNICATOR, trace_collective, communicator),
};

/* What is in trace_op, but for texts that analyses do not look at. */
#define ROW_OP_BITS                                                                                \
	(ROW_BIT(ROW_HAS_OP) | ROW_BIT(ROW_HAS_COLLECTIVE) | ROW_BIT(ROW_RF_ID) |                  \
		ROW_BIT(ROW_EV_IDX) | ROW_BIT(ROW_SEQUENCE) | ROW_BIT(ROW_FORWARD_THREAD) |        \
		ROW_BIT(ROW_PYTHON_ID) | ROW_BIT(ROW_PYTHON_PARENT_ID) |                           \
		ROW_BIT(ROW_PYTHON_MODULE_ID) | ROW_BIT(ROW_INPUT_DIMS) |                          \
		ROW_BIT(ROW_INPUT_TYPES) | ROW_BIT(ROW_INPUT_STRIDES) |                            \
		ROW_BIT(ROW_CONCRETE_INPUTS) | ROW_BIT(ROW_OTHERS))

enum part { PART_EVENT, PART_OP, PART_WORK, PART_MEMORY, PART_COLLECTIVE, PART_MAX };

#define PART(table, bit_)                                                                          \
	{                                                                                          \
		.members = (table), .count = ARRAY_SIZE(table), .bit = (bit_)                      \
	}

static const struct {
	const struct member *members;
	size_t count;
	uint64_t bit; /* in a layout, where there is this part; 0: always */
} parts[PART_MAX] = {
	[PART_EVENT] = PART(event_members, 0),
	[PART_OP] = PART(op_members, ROW_BIT(ROW_HAS_OP)),
	[PART_WORK] = PART(work_members, ROW_BIT(ROW_HAS_WORK)),
	[PART_MEMORY] = PART(memory_members, ROW_BIT(ROW_HAS_MEMORY)),
	[PART_COLLECTIVE] = PART(collective_members, ROW_BIT(ROW_HAS_COLLECTIVE)),
};

static uint64_t member_value(const struct member *member, const void *from)
{
	const uint8_t *at = (const uint8_t *)from + member->offset;
	uint64_t wide;
	uint32_t narrow;

	if (member->size == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

static void set_member(const struct member *member, void *to, uint64_t value)
{
	uint8_t *at = (uint8_t *)to + member->offset;
	uint32_t narrow = (uint32_t)value;

	if (member->size == sizeof(value))
		memcpy(at, &value, sizeof(value));
	else
		memcpy(at, &narrow, sizeof(narrow));
}

static const struct trace_memory *memory_of(
	const struct trace *trace, const struct trace_event *event)
{
	bool has = event->category == TRACE_CPU_INSTANT && event->detail != MODEL_NONE;

	return has ? &trace->memory.items[event->detail] : NULL;
}

void trace_fields_get(
	const struct trace *trace, const struct trace_event *event, struct capture_trace_row *row)
{
	const struct trace_op *op = trace_op(trace, event);
	const struct trace_work *work = trace_work(trace, event);
	const struct trace_memory *memory = memory_of(trace, event);
	uint32_t collective = op ? op->collective : work ? work->collective : MODEL_NONE;
	const void *const from[PART_MAX] = {
		[PART_EVENT] = event,
		[PART_OP] = op,
		[PART_WORK] = work,
		[PART_MEMORY] = memory,
		[PART_COLLECTIVE] =
			collective == MODEL_NONE ? NULL : &trace->collectives.items[collective],
	};

	row->layout = 0;
	for (unsigned i = 0; i < PART_MAX; i++) {
		const struct member *member = parts[i].members, *end = member + parts[i].count;

		if (!from[i])
			continue;
		row->layout |= parts[i].bit;
		for (; member < end; member++) {
			uint64_t value = member_value(member, from[i]);

			if (value == member->none)
				continue;
			row->layout |= ROW_BIT(member->field);
			row->values[member->field] = value;
		}
	}
}

/* Members that the row lacks are not known. */
static void set_members(enum part part, const struct capture_trace_row *row, void *to)
{
	const struct member *member = parts[part].members, *end = member + parts[part].count;

	for (; member < end; member++)
		set_member(member, to,
			row->layout & ROW_BIT(member->field) ? row->values[member->field]
							     : member->none);
}

static int add_collective(
	struct trace *trace, const struct capture_trace_row *row, uint32_t *ret_collective)
{
	struct trace_collective collective = {0};

	*ret_collective = MODEL_NONE;
	if (!(row->layout & ROW_BIT(ROW_HAS_COLLECTIVE)))
		return 0;
	set_members(PART_COLLECTIVE, row, &collective);
	*ret_collective = (uint32_t)trace->collectives.count;
	return array_append(&trace->collectives, collective);
}

static int add_op(
	struct trace *trace, const struct capture_trace_row *row, struct trace_event *event)
{
	struct trace_op op = {0};
	int r = add_collective(trace, row, &op.collective);

	set_members(PART_OP, row, &op);
	event->detail = (uint32_t)trace->ops.count;
	return r ?: array_append(&trace->ops, op);
}

/*
 * The number that importers take from this argument, which stays among the others as text. Work has
 * often those of the work before.
 */
static double bandwidth_of(const struct trace *trace, uint32_t others)
{
	static const char key[] = "\"memory bandwidth (GB/s)\"";
	size_t count = trace->works.count;
	const char *at;

	if (count && trace->works.items[count - 1].others == others)
		return trace->works.items[count - 1].bandwidth_gbps;
	at = strstr(trace_text(trace, others), key);
	if (!at)
		return 0;
	at += strlen(key);
	return strtod(at + strspn(at, " :\""), NULL);
}

static int add_work(
	struct trace *trace, const struct capture_trace_row *row, struct trace_event *event)
{
	struct trace_work work = {0};
	int r = add_collective(trace, row, &work.collective);

	set_members(PART_WORK, row, &work);
	work.bandwidth_gbps = bandwidth_of(trace, work.others);
	event->detail = (uint32_t)trace->works.count;
	return r ?: array_append(&trace->works, work);
}

static int add_memory(
	struct trace *trace, const struct capture_trace_row *row, struct trace_event *event)
{
	struct trace_memory memory = {0};

	set_members(PART_MEMORY, row, &memory);
	event->detail = (uint32_t)trace->memory.count;
	return array_append(&trace->memory, memory);
}

/* Of a damaged capture: the part that a row of this category can have. */
static uint64_t part_of_category(const struct trace_event *event)
{
	if (trace_is_work(event) || event->category == TRACE_SYNC ||
		event->category == TRACE_GPU_ANNOTATION)
		return ROW_BIT(ROW_HAS_WORK);
	return ROW_BIT(event->category == TRACE_CPU_INSTANT ? ROW_HAS_MEMORY : ROW_HAS_OP);
}

int trace_fields_set(
	struct trace *trace, const struct capture_trace_row *row, struct trace_event *event)
{
	uint64_t part = part_of_category(event);

	event->detail = MODEL_NONE;
	set_members(PART_EVENT, row, event);
	if (!(row->layout & part))
		return 0;
	if (part == ROW_BIT(ROW_HAS_OP))
		return add_op(trace, row, event);
	return part == ROW_BIT(ROW_HAS_WORK) ? add_work(trace, row, event)
					     : add_memory(trace, row, event);
}

bool trace_fields_needs_flow(const char *category)
{
	return strcmp(category, TRACE_FLOW_TO_BACKWARD) == 0;
}

/* Is there an operator's detail only for the sake of its other arguments? Of what a call launches,
 * which is among them, graphs' nodes are known. */
static bool has_others_alone(const struct capture_trace_row *row)
{
	const uint64_t detail = ROW_OP_BITS & row->layout;

	return detail == (ROW_BIT(ROW_HAS_OP) | ROW_BIT(ROW_OTHERS)) &&
	       !strstr(intern_get(row->strings, (uint32_t)row->values[ROW_OTHERS]), "\"kernel\"");
}

void trace_fields_drop_arguments(struct capture_trace_row *row, enum trace_category category)
{
	bool is_call = category == TRACE_RUNTIME || category == TRACE_DRIVER;

	row->layout &= ~(ROW_BIT(ROW_CALL_STACK) | ROW_BIT(ROW_MODULE_HIERARCHY));
	if ((row->layout & ROW_BIT(ROW_FLOW)) &&
		!trace_fields_needs_flow(intern_get(row->strings, (uint32_t)row->values[ROW_FLOW])))
		row->layout &= ~(ROW_BIT(ROW_FLOW) | ROW_BIT(ROW_FLOW_ENDS));
	if (is_call && has_others_alone(row))
		row->layout &= ~(ROW_BIT(ROW_HAS_OP) | ROW_BIT(ROW_OTHERS));
}
