/* SPDX-License-Identifier: Apache-2.0 */
/* Reading PerfSample, StackSample and WaitSample packets. */
#include "capture/fields.h"
#include "capture/reader/state.h"

/* Gives the sample to the visitor, unless its stack is not in the file. */
static int visit_sample(struct reader *reader, const struct sequence *sequence,
	struct capture_sample *sample, uint64_t callstack_iid)
{
	if (callstack_iid) {
		sample->callstack = iid_table_get(&sequence->callstacks, callstack_iid);
		if (!sample->callstack) {
			reader->lacks_state = true;
			return 0;
		}
	}
	return reader_visit(reader, sample, sample);
}

/* What sonde adds to both kinds of samples. */
static void take_own_field(const struct pb_field *field, struct capture_sample *sample)
{
	if (field->tag == PB_VARINT(SAMPLE_GIL) && field->value < WIRE_GIL_MAX)
		sample->gil = (enum wire_gil)field->value;
	else if (field->tag == PB_VARINT(SAMPLE_GIL_HOLDER))
		sample->gil_holder_tid = (uint32_t)field->value;
	else if (field->tag == PB_VARINT(SAMPLE_CYCLES))
		sample->cycles = field->value;
	else if (field->tag == PB_VARINT(SAMPLE_INSTRUCTIONS))
		sample->instructions = field->value;
}

int reader_wait_sample(
	struct reader *reader, struct sequence *sequence, uint64_t time_ns, struct pb_bytes message)
{
	struct capture_sample sample = {
		.time_ns = time_ns, .mode = CAPTURE_MODE_KERNEL, .wait = WIRE_WAIT_OTHER};
	struct pb_cursor cursor = pb_cursor(message);
	uint64_t callstack_iid = 0;
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		switch (field.tag) {
		case PB_VARINT(WAIT_PID):
			sample.pid = (uint32_t)field.value;
			break;
		case PB_VARINT(WAIT_TID):
			sample.tid = (uint32_t)field.value;
			break;
		case PB_VARINT(WAIT_CALLSTACK):
			callstack_iid = field.value;
			break;
		case PB_VARINT(WAIT_REASON):
			if (field.value > WIRE_WAIT_NONE && field.value < WIRE_WAIT_MAX)
				sample.wait = (enum wire_wait)field.value;
			break;
		case PB_VARINT(WAIT_DURATION):
			sample.duration_ns = field.value;
			break;
		case PB_VARINT(WAIT_CPU):
			sample.cpu = (uint32_t)field.value;
			break;
		case PB_VARINT(WAIT_GIL):
			if (field.value < WIRE_GIL_MAX)
				sample.gil = (enum wire_gil)field.value;
			break;
		case PB_VARINT(WAIT_GIL_HOLDER):
			sample.gil_holder_tid = (uint32_t)field.value;
			break;
		case PB_VARINT(WAIT_COUNT):
			sample.wait_count = (uint32_t)MIN(field.value, (uint64_t)UINT32_MAX);
			break;
		case PB_VARINT(WAIT_OPEN):
			sample.wait_is_open = field.value;
			break;
		}
	}
	return more < 0 ? more : visit_sample(reader, sequence, &sample, callstack_iid);
}

int reader_perf_sample(
	struct reader *reader, struct sequence *sequence, uint64_t time_ns, struct pb_bytes message)
{
	struct capture_sample sample = {.time_ns = time_ns, .mode = CAPTURE_MODE_USER};
	struct pb_cursor cursor = pb_cursor(message);
	uint64_t callstack_iid = 0;
	bool is_sample = true;
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		switch (field.tag) {
		case PB_VARINT(PERF_SAMPLE_CPU):
			sample.cpu = (uint32_t)field.value;
			break;
		case PB_VARINT(PERF_SAMPLE_PID):
			sample.pid = (uint32_t)field.value;
			break;
		case PB_VARINT(PERF_SAMPLE_TID):
			sample.tid = (uint32_t)field.value;
			break;
		case PB_VARINT(PERF_SAMPLE_CALLSTACK):
			callstack_iid = field.value;
			break;
		case PB_VARINT(PERF_SAMPLE_MODE):
			if (field.value == CAPTURE_MODE_KERNEL)
				sample.mode = CAPTURE_MODE_KERNEL;
			break;
		case PB_VARINT(PERF_SAMPLE_RECORDS_LOST):
		case PB_VARINT(PERF_SAMPLE_SKIPPED_REASON):
			/* Perfetto's way to say that a sample was lost. */
			is_sample = false;
			break;
		default:
			take_own_field(&field, &sample);
		}
	}
	if (more < 0 || !is_sample)
		return more;
	return visit_sample(reader, sequence, &sample, callstack_iid);
}

static int read_inline_context(struct pb_bytes message, struct sample_context *ret_context)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(TASK_PID))
			ret_context->first = (uint32_t)field.value;
		else if (field.tag == PB_VARINT(TASK_TID))
			ret_context->second = (uint32_t)field.value;
	}
	return more;
}

static int find_context(struct reader *reader, const struct iid_table *iids,
	const struct sample_context *contexts, uint64_t iid, struct sample_context *ret_context)
{
	uint32_t index = iid_table_get(iids, iid);

	if (index)
		*ret_context = contexts[index - 1];
	else
		reader->lacks_state = true;
	return 0;
}

int reader_stack_sample(
	struct reader *reader, struct sequence *sequence, uint64_t time_ns, struct pb_bytes message)
{
	struct sample_context task = {0}, execution = {0};
	struct pb_cursor cursor = pb_cursor(message);
	struct capture_sample sample = {.time_ns = time_ns};
	uint64_t callstack_iid = 0;
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		switch (field.tag) {
		case PB_BYTES(STACK_SAMPLE_TASK):
			result = read_inline_context(field.bytes, &task);
			break;
		case PB_VARINT(STACK_SAMPLE_TASK_IID):
			result = find_context(reader, &sequence->task_iids, sequence->tasks.items,
				field.value, &task);
			break;
		case PB_BYTES(STACK_SAMPLE_EXECUTION):
			result = read_inline_context(field.bytes, &execution);
			break;
		case PB_VARINT(STACK_SAMPLE_EXECUTION_IID):
			result = find_context(reader, &sequence->execution_iids,
				sequence->executions.items, field.value, &execution);
			break;
		case PB_VARINT(STACK_SAMPLE_CALLSTACK_IID):
			callstack_iid = field.value;
			break;
		default:
			take_own_field(&field, &sample);
		}
	}
	if (result < 0 || more < 0 || reader->lacks_state)
		return result < 0 ? result : more;
	sample.pid = task.first;
	sample.tid = task.second;
	sample.cpu = execution.first;
	sample.mode =
		execution.second == STACK_MODE_KERNEL ? CAPTURE_MODE_KERNEL : CAPTURE_MODE_USER;
	return visit_sample(reader, sequence, &sample, callstack_iid);
}
