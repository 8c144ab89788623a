/* SPDX-License-Identifier: Apache-2.0 */
/* Reading device work, launches and their stacks, and what else there is of devices. */
#include "capture/device_messages.h"
#include "capture/fields.h"
#include "capture/reader/state.h"

static int read_size(struct pb_bytes message, uint32_t ret_sizes[3])
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		uint32_t at = (field.tag >> 3) - DIMENSION_X;

		if ((field.tag & 7) == PB_WIRE_VARINT && at < 3)
			ret_sizes[at] = (uint32_t)field.value;
	}
	return more;
}

/* Sizes that do not fit are written again, elsewhere. */
static int read_stage_launch(struct pb_bytes message, struct capture_device_work *work)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	uint32_t grid[3] = {0};
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_BYTES(STAGE_GROUP))
			result = read_size(field.bytes, work->local_size);
		else if (field.tag == PB_BYTES(STAGE_GRID))
			result = read_size(field.bytes, grid);
	}
	for (size_t i = 0; i < ARRAY_SIZE(grid); i++)
		work->global_size[i] = grid[i];
	return result < 0 ? result : more;
}

int reader_stage(struct pb_bytes message, struct capture_device_work *work, uint64_t *ret_name_iid)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		switch (field.tag) {
		case PB_VARINT(STAGE_EVENT_ID):
			work->correlation = field.value;
			break;
		case PB_VARINT(STAGE_DURATION):
			work->end_ns = work->start_ns + field.value;
			break;
		case PB_VARINT(STAGE_NAME_IID):
			*ret_name_iid = field.value;
			break;
		case PB_BYTES(STAGE_LAUNCH):
			result = read_stage_launch(field.bytes, work);
			break;
		}
	}
	return result < 0 ? result : more;
}

static void take_work_field(
	const struct pb_field *field, struct capture_device_work *work, uint64_t *ret_device_iid)
{
	switch (field->tag) {
	case PB_VARINT(DEVICE_WORK_PID):
		work->pid = (uint32_t)field->value;
		break;
	case PB_VARINT(DEVICE_WORK_CORRELATION):
		work->correlation = field->value;
		break;
	case PB_VARINT(DEVICE_WORK_KIND):
		if (field->value < WIRE_DEVICE_MAX)
			work->kind = (enum wire_device_kind)field->value;
		break;
	case PB_VARINT(DEVICE_WORK_QUEUED):
		work->queued_ns = field->value;
		break;
	case PB_VARINT(DEVICE_WORK_SUBMIT):
		work->submit_ns = field->value;
		break;
	case PB_VARINT(DEVICE_WORK_BYTES):
		work->bytes = field->value;
		break;
	case PB_VARINT(DEVICE_WORK_FAILED):
		work->failed = field->value;
		break;
	case PB_VARINT(DEVICE_WORK_DEVICE_IID):
		*ret_device_iid = field->value;
		break;
	case PB_VARINT(DEVICE_WORK_QUEUE):
		work->queue = (uint32_t)field->value;
		break;
	case PB_VARINT(DEVICE_WORK_TID):
		work->tid = (uint32_t)field->value;
		break;
	case PB_VARINT(DEVICE_WORK_LAUNCH):
		work->launch_ns = field->value;
		break;
	case PB_VARINT(DEVICE_WORK_LAUNCH_DURATION):
		work->launch_duration_ns = field->value;
		break;
	case PB_VARINT(DEVICE_WORK_GLOBAL):
	case PB_VARINT(DEVICE_WORK_GLOBAL + 1):
	case PB_VARINT(DEVICE_WORK_GLOBAL + 2):
		work->global_size[(field->tag >> 3) - DEVICE_WORK_GLOBAL] = field->value;
		break;
	default:
		take_device_work_field(field, work);
		break;
	}
}

int reader_device_work(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes stage, struct pb_bytes message)
{
	struct capture_device_work work = {.start_ns = time_ns, .end_ns = time_ns};
	struct pb_cursor cursor = pb_cursor(message);
	uint64_t name_iid = 0, device_iid = 0;
	struct pb_field field;
	int more = 0, result = reader_stage(stage, &work, &name_iid);

	while (result == 0 && (more = pb_next(&cursor, &field)) > 0)
		take_work_field(&field, &work, &device_iid);
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	work.name = reader_specification(reader, sequence, name_iid);
	work.device = reader_specification(reader, sequence, device_iid);
	if (!work.device)
		work.device = "";
	return reader_visit(reader, device_work, &work);
}

int reader_launch(struct reader *reader, uint64_t time_ns, struct pb_bytes message)
{
	struct capture_launch launch = {.time_ns = time_ns};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		switch (field.tag) {
		case PB_VARINT(LAUNCH_PID):
			launch.pid = (uint32_t)field.value;
			break;
		case PB_VARINT(LAUNCH_TID):
			launch.tid = (uint32_t)field.value;
			break;
		case PB_VARINT(LAUNCH_CORRELATION):
			launch.correlation = field.value;
			break;
		case PB_VARINT(LAUNCH_KIND):
			if (field.value < WIRE_DEVICE_MAX)
				launch.kind = (enum wire_device_kind)field.value;
			break;
		case PB_VARINT(LAUNCH_DURATION):
			launch.duration_ns = field.value;
			break;
		case PB_VARINT(LAUNCH_UNTIMED):
			if (field.value < WIRE_DEVICE_UNTIMED_MAX)
				launch.untimed = (enum wire_device_untimed)field.value;
			break;
		case PB_VARINT(LAUNCH_QUEUE):
			launch.queue = (uint32_t)field.value;
			break;
		}
	}
	return more < 0 ? more : reader_visit(reader, launch, &launch);
}

int reader_launch_stack(
	struct reader *reader, struct sequence *sequence, uint64_t time_ns, struct pb_bytes message)
{
	struct capture_launch_stack stack = {.time_ns = time_ns};
	struct pb_cursor cursor = pb_cursor(message);
	uint64_t callstack_iid = 0;
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		switch (field.tag) {
		case PB_VARINT(LAUNCH_PID):
			stack.pid = (uint32_t)field.value;
			break;
		case PB_VARINT(LAUNCH_TID):
			stack.tid = (uint32_t)field.value;
			break;
		case PB_VARINT(LAUNCH_CORRELATION):
			stack.correlation = field.value;
			break;
		case PB_VARINT(LAUNCH_STACK_CALLSTACK):
			callstack_iid = field.value;
			break;
		case PB_VARINT(LAUNCH_STACK_SAME_AS):
			stack.same_as = field.value;
			break;
		case PB_VARINT(LAUNCH_STACK_IS_CHECK):
			stack.is_check = field.value;
			break;
		}
	}
	if (more < 0)
		return more;
	if (callstack_iid) {
		stack.callstack = iid_table_get(&sequence->callstacks, callstack_iid);
		reader->lacks_state |= !stack.callstack;
	}
	return reader_visit(reader, launch_stack, &stack);
}

int reader_device_event(struct reader *reader, uint64_t time_ns,
	enum capture_device_event_kind kind, struct pb_bytes message)
{
	struct capture_device_event event = {.kind = kind, .time_ns = time_ns};
	struct pb_bytes text;
	int result = take_device_event(message, &event, &text);

	if (result == 0 && text.at)
		result = reader_text(reader, text, &event.text);
	return result < 0 ? result : reader_visit(reader, device_event, &event);
}
