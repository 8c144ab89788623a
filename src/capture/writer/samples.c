/* SPDX-License-Identifier: Apache-2.0 */
/* Writing samples, of running and of waiting threads. */
#include <assert.h>

#include "capture/fields.h"
#include "capture/protobuf.h"
#include "capture/writer/state.h"

/*
 * Samples name the sequence's own clock, which counts from one packet to the next; a sample that is
 * older than the one before it names CLOCK_MONOTONIC and leaves that clock alone.
 */
static void put_timestamp(struct capture_writer *writer, struct strbuf *packet, uint64_t time_ns)
{
	if (time_ns >= writer->last_time_ns) {
		pb_put_u64(packet, PACKET_TIMESTAMP, time_ns - writer->last_time_ns);
		return;
	}
	pb_put_u64(packet, PACKET_TIMESTAMP, time_ns);
	pb_put_u64(packet, PACKET_TIMESTAMP_CLOCK, CLOCK_ID_MONOTONIC);
}

static void put_gil(
	struct strbuf *message, const struct capture_sample *sample, uint32_t gil, uint32_t holder)
{
	if (sample->gil != WIRE_GIL_NONE)
		pb_put_u64(message, gil, sample->gil);
	if (sample->gil_holder_tid)
		pb_put_u64(message, holder, sample->gil_holder_tid);
}

/* What sonde adds to both kinds of samples of running threads. */
static void put_own_fields(struct strbuf *message, const struct capture_sample *sample)
{
	put_gil(message, sample, SAMPLE_GIL, SAMPLE_GIL_HOLDER);
	if (!sample->cycles)
		return;
	pb_put_u64(message, SAMPLE_CYCLES, sample->cycles);
	pb_put_u64(message, SAMPLE_INSTRUCTIONS, sample->instructions);
}

static int put_wait_sample(struct capture_writer *writer, const struct capture_sample *sample)
{
	struct strbuf *packet = writer_begin_packet(writer);
	size_t begin;

	put_timestamp(writer, packet, sample->time_ns);
	writer_put_interned(writer, packet);
	begin = pb_begin(packet, PACKET_SONDE_WAIT);
	pb_put_u64(packet, WAIT_PID, sample->pid);
	pb_put_u64(packet, WAIT_TID, sample->tid);
	if (sample->callstack)
		pb_put_u64(packet, WAIT_CALLSTACK, sample->callstack);
	pb_put_u64(packet, WAIT_REASON, sample->wait);
	pb_put_u64(packet, WAIT_DURATION, sample->duration_ns);
	pb_put_u64(packet, WAIT_CPU, sample->cpu);
	put_gil(packet, sample, WAIT_GIL, WAIT_GIL_HOLDER);
	if (sample->wait_count)
		pb_put_u64(packet, WAIT_COUNT, sample->wait_count);
	if (sample->wait_is_open)
		pb_put_u64(packet, WAIT_OPEN, true);
	pb_end(packet, begin);
	return writer_end_packet(writer);
}

static int put_stack_sample(struct capture_writer *writer, const struct capture_sample *sample)
{
	struct interning *interning = &writer->interning;
	uint64_t task = 0, execution = 0;
	struct strbuf *packet;
	size_t begin;
	int result = interning_task(interning, sample->pid, sample->tid, &task);

	if (result == 0)
		result = interning_execution(interning, sample->cpu, sample->mode, &execution);
	if (result < 0)
		return result;
	packet = writer_begin_packet(writer);
	put_timestamp(writer, packet, sample->time_ns);
	writer_put_interned(writer, packet);
	begin = pb_begin(packet, PACKET_STACK_SAMPLE);
	pb_put_u64(packet, STACK_SAMPLE_TASK_IID, task);
	pb_put_u64(packet, STACK_SAMPLE_EXECUTION_IID, execution);
	if (sample->callstack)
		pb_put_u64(packet, STACK_SAMPLE_CALLSTACK_IID, sample->callstack);
	if (writer->period_ns)
		pb_put_u64(packet, STACK_SAMPLE_WEIGHT, writer->period_ns);
	put_own_fields(packet, sample);
	pb_end(packet, begin);
	return writer_end_packet(writer);
}

static int put_perf_sample(struct capture_writer *writer, const struct capture_sample *sample)
{
	struct strbuf *packet = writer_begin_packet(writer);
	size_t begin;

	put_timestamp(writer, packet, sample->time_ns);
	writer_put_interned(writer, packet);
	begin = pb_begin(packet, PACKET_PERF_SAMPLE);
	pb_put_u64(packet, PERF_SAMPLE_CPU, sample->cpu);
	pb_put_u64(packet, PERF_SAMPLE_PID, sample->pid);
	pb_put_u64(packet, PERF_SAMPLE_TID, sample->tid);
	if (sample->callstack)
		pb_put_u64(packet, PERF_SAMPLE_CALLSTACK, sample->callstack);
	pb_put_u64(packet, PERF_SAMPLE_MODE, sample->mode);
	put_own_fields(packet, sample);
	pb_end(packet, begin);
	return writer_end_packet(writer);
}

int capture_writer_sample(struct capture_writer *writer, const struct capture_sample *sample)
{
	int result;

	assert(writer_knows_callstack(writer, sample->callstack));
	if (writer->visitor)
		return writer->visitor->sample(writer->visitor_context, sample);
	result = writer_start(writer);
	if (result == 0 && writer->interning.pending.length > PENDING_BYTES)
		result = writer_put_interned_packet(writer);
	if (result < 0)
		return result;
	if (sample->wait != WIRE_WAIT_NONE)
		result = put_wait_sample(writer, sample);
	else if (writer->stack_sample)
		result = put_stack_sample(writer, sample);
	else
		result = put_perf_sample(writer, sample);
	if (result == 0 && sample->wait == WIRE_WAIT_NONE && sample->callstack)
		result = sampled_has(&writer->sampled, &writer->interning, sample->callstack);
	if (result < 0)
		return result;
	strbuf_clear(&writer->interning.pending);
	writer->last_time_ns = MAX(writer->last_time_ns, sample->time_ns);
	return 0;
}
