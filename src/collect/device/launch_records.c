/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/device/launch_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "sources/process/proc_info.h"

struct launch_records {
	struct capture_writer *writer;
	struct launch_records_account account;
	struct map_u64 sent; /* hash of pid and start time → hash of what was reported */
	struct wire_launch_facts facts;
	_Alignas(8) unsigned char sample[WIRE_LAUNCH_MAX_BYTES];
};

int launch_records_new(struct launch_records **ret_records, struct capture_writer *writer)
{
	struct launch_records *records = calloc(1, sizeof(*records));

	if (!records)
		return -ENOMEM;
	records->writer = writer;
	*ret_records = records;
	return 0;
}

struct launch_records *launch_records_free(struct launch_records *records)
{
	if (!records)
		return NULL;
	map_u64_done(&records->sent);
	free(records);
	return NULL;
}

const struct launch_records_account *launch_records_account(const struct launch_records *records)
{
	return &records->account;
}

/* ---- records ---- */

bool launch_records_is_one(const struct wire_record *record)
{
	return record->type == WIRE_RECORD_SAMPLE || record->type == WIRE_RECORD_PYTHON_CODE ||
	       record->type == WIRE_RECORD_LAUNCH_SAME || record->type == WIRE_RECORD_LAUNCH_CHECK;
}

static int add_same(
	struct launch_records *records, uint32_t pid, const struct wire_launch_same *same)
{
	struct capture_launch_stack out = {.pid = pid};

	if (same->record.length_bytes < sizeof(*same) || !same->same_as ||
		same->same_as == same->correlation) {
		records->account.malformed++;
		return 0;
	}
	out.time_ns = same->time_ns;
	out.correlation = same->correlation;
	out.same_as = same->same_as;
	out.is_check = same->record.type == WIRE_RECORD_LAUNCH_CHECK;
	if (out.is_check)
		records->account.checked++;
	else
		records->account.same++;
	return capture_writer_launch_stack(records->writer, &out);
}

/* The bytes behind the sample's head, when they are Python frames and a stack; 0: they are not. */
static size_t tail_bytes(const struct wire_sample *sample)
{
	uint64_t length = sample->record.length_bytes, bytes;
	const struct wire_stack_copy *copy;

	if (length < sizeof(*sample) || sample->python_frame_count > WIRE_LAUNCH_PYTHON_FRAMES)
		return 0;
	bytes = sample->python_frame_count * sizeof(struct wire_python_frame);
	if (length < sizeof(*sample) + bytes + sizeof(*copy))
		return 0;
	copy = (const void *)((const char *)(sample + 1) + bytes);
	bytes += sizeof(*copy);
	if (copy->stack_bytes > WIRE_LAUNCH_COPY_BYTES || copy->stack_bytes % 8 ||
		copy->stack_bytes > length - sizeof(*sample) - bytes)
		return 0;
	return (size_t)(bytes + copy->stack_bytes);
}

/* A process names code of the interpreter that it runs, and of no other. */
static bool runs(const struct python_registry *python, uint32_t pid, uint32_t interpreter)
{
	struct python_target target;

	return !interpreter ||
	       (python_registry_target(python, pid, &target) == WIRE_LAUNCH_PYTHON_TARGET &&
		       target.interpreter == interpreter);
}

/* Only what the process can say of itself is taken from its record. */
static int add_copy(struct launch_records *records, struct pipeline *pipeline,
	const struct python_registry *python, uint32_t pid, const struct wire_sample *from)
{
	struct wire_sample *sample = (struct wire_sample *)records->sample;
	size_t tail = tail_bytes(from);

	if (!tail || from->python >= WIRE_PYTHON_MAX ||
		!runs(python, pid, from->python_interpreter)) {
		records->account.malformed++;
		return 0;
	}
	*sample = (struct wire_sample){
		.record = {.type = WIRE_RECORD_SAMPLE,
			.length_bytes = (uint32_t)(sizeof(*sample) + tail)},
		.time_ns = from->time_ns,
		.pid = pid,
		.tid = from->tid,
		.stop = WIRE_STOP_NO_TABLE,
		.flags = WIRE_SAMPLE_STACK_COPY | WIRE_SAMPLE_LAUNCH,
		.python = from->python,
		.python_frame_count = from->python_frame_count,
		.python_interpreter = from->python_interpreter,
		.correlation = from->correlation,
	};
	/* Of a process that has ended they are not known any more. */
	proc_read_thread_name(pid, pid, sample->process_name);
	proc_read_thread_name(pid, from->tid, sample->thread_name);
	memcpy(sample + 1, from + 1, tail);
	records->account.copies++;
	return pipeline_add_record(pipeline, &sample->record);
}

static int add_code(struct launch_records *records, struct pipeline *pipeline,
	const struct python_registry *python, uint32_t pid, const struct wire_python_code *from)
{
	struct wire_python_code *code = (struct wire_python_code *)records->sample;

	if (from->record.length_bytes < sizeof(*from) ||
		from->record.length_bytes > sizeof(records->sample) ||
		!runs(python, pid, from->interpreter)) {
		records->account.malformed++;
		return 0;
	}
	memcpy(code, from, from->record.length_bytes);
	code->pid = pid;
	return pipeline_add_record(pipeline, &code->record);
}

int launch_records_add(struct launch_records *records, struct pipeline *pipeline,
	const struct python_registry *python, uint32_t pid, const struct wire_record *record)
{
	if (record->type == WIRE_RECORD_PYTHON_CODE)
		return add_code(records, pipeline, python, pid, (const void *)record);
	if (record->type == WIRE_RECORD_SAMPLE)
		return add_copy(records, pipeline, python, pid, (const void *)record);
	return add_same(records, pid, (const void *)record);
}

/* ---- facts ---- */

/* Ranges that touch are one; more than there is room for are marked as too many. */
static uint32_t fill_code_ranges(struct wire_launch_facts *facts, const struct process *process)
{
	uint32_t count = 0;

	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct mapping *mapping = &process->mappings[i];

		if (count && facts->code_ranges[count - 1].end == mapping->start) {
			facts->code_ranges[count - 1].end = mapping->end;
			continue;
		}
		if (count == WIRE_LAUNCH_CODE_RANGES)
			return WIRE_LAUNCH_CODE_RANGES + 1;
		facts->code_ranges[count++] = (struct wire_code_range){
			.start = mapping->start,
			.end = mapping->end,
		};
	}
	return count;
}

static void fill_facts(struct wire_launch_facts *facts, const struct process *process,
	const struct python_registry *python)
{
	struct python_target target;

	memset(facts, 0, sizeof(*facts));
	facts->python = python_registry_target(python, process->pid, &target);
	if (facts->python == WIRE_LAUNCH_PYTHON_TARGET)
		memcpy(facts->python_target, &target, sizeof(target));
	facts->code_range_count = fill_code_ranges(facts, process);
}

/* The process takes what it reads while the sequence is odd for nothing. */
static void write_facts(struct wire_launch_facts *to, const struct wire_launch_facts *from)
{
	uint32_t sequence = atomic_load_explicit(&to->sequence, memory_order_relaxed) | 1;

	/* An exchange, since what follows must not come before it. */
	atomic_exchange_explicit(&to->sequence, sequence, memory_order_acq_rel);
	to->python = from->python;
	to->code_range_count = from->code_range_count;
	memcpy(to->python_target, from->python_target, sizeof(to->python_target));
	memcpy(to->code_ranges, from->code_ranges, sizeof(to->code_ranges));
	atomic_store_explicit(&to->sequence, sequence + 1, memory_order_release);
}

int launch_records_send_facts(struct launch_records *records, struct wire_launch_facts *facts,
	uint64_t start_time_ns, const struct process *process, const struct python_registry *python)
{
	uint64_t key = hash_u64(start_time_ns ^ hash_u64(process->pid)), before, now;
	struct python_target target;
	enum wire_launch_python state = python_registry_target(python, process->pid, &target);

	/* Changes of the mappings are counted from 0 again by an execution, Python has numbers. */
	now = hash_u64(process->generation ^ hash_u64(process->exec_count) ^ (uint64_t)state << 32 ^
		       (state == WIRE_LAUNCH_PYTHON_TARGET ? target.interpreter : 0)) |
	      1;
	if (map_u64_get(&records->sent, key, &before) && before == now)
		return 0;
	fill_facts(&records->facts, process, python);
	write_facts(facts, &records->facts);
	return map_u64_set(&records->sent, key, now);
}

void launch_records_add_hint(struct wire_launch_facts *facts, uint64_t correlation,
	const uint64_t *frames, size_t frame_count)
{
	uint64_t count = atomic_load_explicit(&facts->hint_count, memory_order_relaxed);
	struct wire_launch_hint *hint = &facts->hints[count % WIRE_LAUNCH_HINTS];

	if (frame_count > WIRE_LAUNCH_HINT_FRAMES)
		return;
	atomic_exchange_explicit(&hint->number, 0, memory_order_acq_rel);
	hint->correlation = correlation;
	hint->frame_count = frame_count;
	memcpy(hint->frames, frames, frame_count * sizeof(*frames));
	atomic_store_explicit(&hint->number, count + 1, memory_order_release);
	atomic_store_explicit(&facts->hint_count, count + 1, memory_order_release);
}
