/* SPDX-License-Identifier: Apache-2.0 */
/* Reading PerfSample and StackSample packets. */
#include "capture/fields.h"
#include "capture/reader_state.h"

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
