/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/writer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "capture/descriptor_set.h"
#include "capture/fields.h"
#include "capture/protobuf.h"
#include "capture/writer_messages.h"
#include "capture/writer_state.h"

/* Interned data and symbols wait for company, but not beyond this. */
#define PENDING_BYTES ((size_t)64 * 1024)

/* 28 bits take four bytes in each packet and still tell thousands of merged captures apart. */
static uint32_t random_sequence_id(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = monotonic_now_ns() ^ (uint64_t)getpid() << 40;
	return (uint32_t)(hash_u64(seed) & 0xfffffff) | 1;
}

int capture_writer_open(struct capture_writer **ret_writer, const char *path,
	const struct capture_writer_options *options, struct errmsg *err)
{
	struct capture_writer *writer = calloc(1, sizeof(*writer));
	int result;

	assert(!options || options->size >= sizeof(*options));
	if (!writer)
		return errmsg_set(err, -ENOMEM, "cannot create %s: out of memory", path);
	writer->stack_sample = options && options->stack_sample;
	writer->device_slices = options && options->device_slices;
	writer->sequence_id = random_sequence_id();
	result = output_open(&writer->output, path, !options || !options->uncompressed, err);
	if (result < 0) {
		capture_writer_free(writer);
		return result;
	}
	*ret_writer = writer;
	return 0;
}

int capture_writer_open_live(struct capture_writer **ret_writer,
	const struct capture_visitor *visitor, void *context, struct errmsg *err)
{
	struct capture_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return errmsg_set(err, -ENOMEM, "cannot begin: out of memory");
	writer->visitor = visitor;
	writer->visitor_context = context;
	writer->output.fd = -1;
	*ret_writer = writer;
	return 0;
}

struct capture_writer *capture_writer_free(struct capture_writer *writer)
{
	if (!writer)
		return NULL;
	interning_done(&writer->interning);
	map_u64_done(&writer->queues);
	map_u64_done(&writer->tracks);
	map_u64_done(&writer->lanes);
	map_u64_done(&writer->open_steps);
	symbol_batch_done(&writer->symbols);
	output_done(&writer->output);
	free(writer);
	return NULL;
}

struct strbuf *writer_begin_packet(struct capture_writer *writer)
{
	struct strbuf *packet = &writer->output.packets;

	output_begin_packet(&writer->output);
	pb_put_u64(packet, PACKET_SEQUENCE_ID, writer->sequence_id);
	return packet;
}

int writer_end_packet(struct capture_writer *writer)
{
	return output_end_packet(&writer->output);
}

/* A packet that is one message and depends on no state. */
static int put_message(struct capture_writer *writer, uint32_t field, const struct strbuf *message)
{
	struct strbuf *packet = writer_begin_packet(writer);

	if (strbuf_status(message) < 0)
		packet->status = -ENOMEM;
	pb_put_bytes(packet, field, strbuf_cstr(message), message->length);
	return writer_end_packet(writer);
}

static int put_sequence_start(struct capture_writer *writer)
{
	struct strbuf *packet = writer_begin_packet(writer);

	pb_put_u64(packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED);
	pb_put_u64(packet, PACKET_FIRST_ON_SEQUENCE, true);
	put_defaults(packet, writer->period_ns, writer->stack_sample);
	return writer_end_packet(writer);
}

static int put_clocks(struct capture_writer *writer, const struct capture_session *session)
{
	struct strbuf *packet = writer_begin_packet(writer);

	put_clock_snapshot(packet, session);
	writer->last_time_ns = session->start_time_ns;
	return writer_end_packet(writer);
}

static int put_trace_uuid(struct capture_writer *writer, const struct capture_session *session)
{
	struct strbuf *packet = writer_begin_packet(writer);
	size_t begin = pb_begin(packet, PACKET_TRACE_UUID);

	pb_put_u64(packet, UUID_MSB, hash_u64(writer->sequence_id));
	pb_put_u64(packet, UUID_LSB, hash_u64(session->start_realtime_ns ^ writer->sequence_id));
	pb_end(packet, begin);
	return writer_end_packet(writer);
}

static int put_descriptors(struct capture_writer *writer)
{
	struct strbuf *packet = writer_begin_packet(writer);
	size_t begin = pb_begin(packet, PACKET_EXTENSION_DESCRIPTOR);

	pb_put_bytes(packet, EXTENSION_SET, capture_descriptor_set, capture_descriptor_set_length);
	pb_end(packet, begin);
	return writer_end_packet(writer);
}

/* The packets that open a sequence; they make sense of all later ones. */
static int start(struct capture_writer *writer, const struct capture_session *session)
{
	int result;

	writer->period_ns = session->period_ns;
	result = put_sequence_start(writer);
	if (result == 0)
		result = put_clocks(writer, session);
	if (result == 0)
		result = put_trace_uuid(writer, session);
	if (result == 0)
		result = put_descriptors(writer);
	writer->started = result == 0;
	return result;
}

/* For captures without a session, such as imported ones: the clocks as they are now. */
static int start_now(struct capture_writer *writer)
{
	struct capture_session session = {.start_time_ns = monotonic_now_ns()};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	session.start_realtime_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	clock_gettime(CLOCK_BOOTTIME, &now);
	session.start_boottime_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	return start(writer, &session);
}

int writer_start(struct capture_writer *writer)
{
	return writer->started ? 0 : start_now(writer);
}

int capture_writer_session(struct capture_writer *writer, const struct capture_session *session)
{
	struct strbuf *packet;
	int result;

	if (writer->visitor)
		return writer->visitor->session(writer->visitor_context, session);
	result = writer->started ? 0 : start(writer, session);
	if (result < 0)
		return result;
	packet = writer_begin_packet(writer);
	put_system_info(packet, session);
	put_session(packet, session);
	return writer_end_packet(writer);
}

/* Was the thing with this id, one of `table`'s, new to a writer without a file? */
static bool is_news(struct capture_writer *writer, const struct intern *table, size_t count_before)
{
	if (!writer->visitor)
		return false;
	strbuf_clear(&writer->interning.pending);
	return table->entries.count > count_before;
}

int capture_writer_mapping(
	struct capture_writer *writer, const struct capture_mapping *mapping, capture_id *ret_id)
{
	const struct intern *table = &writer->interning.mappings;
	size_t before = table->entries.count;
	int result = interning_mapping(&writer->interning, mapping, ret_id);

	if (result == 0 && is_news(writer, table, before))
		result = writer->visitor->mapping(writer->visitor_context, *ret_id, mapping);
	return result;
}

int capture_writer_frame(
	struct capture_writer *writer, const struct capture_frame *frame, capture_id *ret_id)
{
	const struct intern *table = &writer->interning.frames;
	size_t before = table->entries.count;
	int result = interning_frame(&writer->interning, frame, ret_id);

	if (result == 0 && is_news(writer, table, before))
		result = writer->visitor->frame(writer->visitor_context, *ret_id, frame);
	return result;
}

int capture_writer_callstack(struct capture_writer *writer, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python, capture_id *ret_id)
{
	const struct intern *table = &writer->interning.callstacks;
	size_t before = table->entries.count;
	int result = interning_callstack(&writer->interning, frames, count, stop, python, ret_id);

	if (result == 0 && is_news(writer, table, before))
		result = writer->visitor->callstack(
			writer->visitor_context, *ret_id, frames, count, stop, python);
	return result;
}

void capture_writer_forget_callstacks(struct capture_writer *writer)
{
	assert(writer->visitor);
	intern_done(&writer->interning.callstacks);
}

/* Puts what was interned since the last packet into this one. */
static void put_interned(struct capture_writer *writer, struct strbuf *packet)
{
	const struct strbuf *pending = &writer->interning.pending;

	pb_put_u64(packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
	if (pending->length)
		pb_put_bytes(packet, PACKET_INTERNED_DATA, pending->data, pending->length);
}

static int put_interned_packet(struct capture_writer *writer)
{
	int result = writer_start(writer);

	if (result < 0 || writer->interning.pending.length == 0)
		return result;
	put_interned(writer, writer_begin_packet(writer));
	result = writer_end_packet(writer);
	if (result == 0)
		strbuf_clear(&writer->interning.pending);
	return result;
}

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

static int put_wait_sample(struct capture_writer *writer, const struct capture_sample *sample)
{
	struct strbuf *packet = writer_begin_packet(writer);
	size_t begin;

	put_timestamp(writer, packet, sample->time_ns);
	put_interned(writer, packet);
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
	put_interned(writer, packet);
	begin = pb_begin(packet, PACKET_STACK_SAMPLE);
	pb_put_u64(packet, STACK_SAMPLE_TASK_IID, task);
	pb_put_u64(packet, STACK_SAMPLE_EXECUTION_IID, execution);
	if (sample->callstack)
		pb_put_u64(packet, STACK_SAMPLE_CALLSTACK_IID, sample->callstack);
	if (writer->period_ns)
		pb_put_u64(packet, STACK_SAMPLE_WEIGHT, writer->period_ns);
	put_gil(packet, sample, SAMPLE_GIL, SAMPLE_GIL_HOLDER);
	pb_end(packet, begin);
	return writer_end_packet(writer);
}

static int put_perf_sample(struct capture_writer *writer, const struct capture_sample *sample)
{
	struct strbuf *packet = writer_begin_packet(writer);
	size_t begin;

	put_timestamp(writer, packet, sample->time_ns);
	put_interned(writer, packet);
	begin = pb_begin(packet, PACKET_PERF_SAMPLE);
	pb_put_u64(packet, PERF_SAMPLE_CPU, sample->cpu);
	pb_put_u64(packet, PERF_SAMPLE_PID, sample->pid);
	pb_put_u64(packet, PERF_SAMPLE_TID, sample->tid);
	if (sample->callstack)
		pb_put_u64(packet, PERF_SAMPLE_CALLSTACK, sample->callstack);
	pb_put_u64(packet, PERF_SAMPLE_MODE, sample->mode);
	put_gil(packet, sample, SAMPLE_GIL, SAMPLE_GIL_HOLDER);
	pb_end(packet, begin);
	return writer_end_packet(writer);
}

int capture_writer_sample(struct capture_writer *writer, const struct capture_sample *sample)
{
	int result;

	assert(sample->callstack <= writer->interning.callstacks.entries.count);
	if (writer->visitor)
		return writer->visitor->sample(writer->visitor_context, sample);
	result = writer_start(writer);
	if (result == 0 && writer->interning.pending.length > PENDING_BYTES)
		result = put_interned_packet(writer);
	if (result < 0)
		return result;
	if (sample->wait != WIRE_WAIT_NONE)
		result = put_wait_sample(writer, sample);
	else if (writer->stack_sample)
		result = put_stack_sample(writer, sample);
	else
		result = put_perf_sample(writer, sample);
	if (result < 0)
		return result;
	strbuf_clear(&writer->interning.pending);
	writer->last_time_ns = MAX(writer->last_time_ns, sample->time_ns);
	return 0;
}

struct strbuf *writer_begin_timed_packet(struct capture_writer *writer, uint64_t time_ns)
{
	struct strbuf *packet = writer_begin_packet(writer);

	pb_put_u64(packet, PACKET_TIMESTAMP, time_ns);
	pb_put_u64(packet, PACKET_TIMESTAMP_CLOCK, CLOCK_ID_MONOTONIC);
	put_interned(writer, packet);
	return packet;
}

int writer_end_timed_packet(struct capture_writer *writer)
{
	int result = writer_end_packet(writer);

	if (result == 0)
		strbuf_clear(&writer->interning.pending);
	return result;
}

uint64_t writer_track_uuid(const struct capture_writer *writer, uint32_t id, bool is_thread)
{
	return (uint64_t)writer->sequence_id << 33 | (uint64_t)id << 1 | is_thread;
}

int writer_is_new_track(struct capture_writer *writer, uint64_t uuid)
{
	if (map_u64_get(&writer->tracks, uuid, NULL))
		return 0;
	return map_u64_set(&writer->tracks, uuid, 1) ?: 1;
}

int capture_writer_process(struct capture_writer *writer, const struct capture_process *process)
{
	struct strbuf *packet;
	int result;

	if (writer->visitor)
		return writer->visitor->process(writer->visitor_context, process);
	result = writer_start(writer);
	if (result < 0)
		return result;
	packet = writer_begin_packet(writer);
	put_process(packet, process, writer_track_uuid(writer, process->pid, false));
	return writer_end_packet(writer);
}

int capture_writer_thread(struct capture_writer *writer, const struct capture_thread *thread)
{
	struct strbuf *packet;
	int result;

	if (writer->visitor)
		return writer->visitor->thread(writer->visitor_context, thread);
	result = writer_start(writer);
	if (result < 0)
		return result;
	packet = writer_begin_packet(writer);
	put_thread(packet, thread, writer_track_uuid(writer, thread->tid, true));
	return writer_end_packet(writer);
}

/* The mapping has to be in the file before its symbols. */
static int put_symbols(struct capture_writer *writer)
{
	int result;

	if (symbol_batch_is_empty(&writer->symbols))
		return 0;
	result = put_interned_packet(writer);
	if (result == 0)
		result = put_message(writer, PACKET_MODULE_SYMBOLS, &writer->symbols.module);
	symbol_batch_clear(&writer->symbols);
	return result;
}

int capture_writer_symbols(struct capture_writer *writer, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	if (writer->visitor)
		return writer->visitor->symbols(
			writer->visitor_context, mapping, rel_pc, lines, count);
	if (!symbol_batch_takes(&writer->symbols, mapping) ||
		writer->symbols.module.length > PENDING_BYTES) {
		int result = put_symbols(writer);

		if (result < 0)
			return result;
		symbol_batch_start(&writer->symbols, &writer->interning, mapping);
	}
	return symbol_batch_add(&writer->symbols, rel_pc, lines, count);
}

int capture_writer_stats(struct capture_writer *writer, const struct capture_stats *stats)
{
	_cleanup_strbuf_ struct strbuf message = {0};
	int result;

	if (writer->visitor)
		return writer->visitor->stats(writer->visitor_context, stats);
	result = writer_start(writer);
	if (result < 0)
		return result;
	put_stats(&message, stats);
	return put_message(writer, PACKET_SONDE_STATS, &message);
}

int capture_writer_flush(struct capture_writer *writer, struct errmsg *err)
{
	int result;

	if (writer->visitor)
		return 0;
	result = put_interned_packet(writer);
	if (result == 0)
		result = put_symbols(writer);
	if (result < 0)
		return errmsg_set(
			err, result, "cannot write %s: %s", writer->output.path, strerror(-result));
	return output_flush(&writer->output, err);
}

size_t capture_writer_waiting(const struct capture_writer *writer)
{
	return writer->output.ready.length;
}

uint64_t capture_writer_bytes(const struct capture_writer *writer)
{
	return writer->output.file_bytes;
}

int capture_writer_close(struct capture_writer *writer, struct errmsg *err)
{
	int ended = writer->visitor ? 0 : writer_end_steps(writer);
	int flushed = capture_writer_flush(writer, err);
	int closed = writer->visitor ? 0 : output_close(&writer->output, err);

	capture_writer_free(writer);
	if (ended < 0)
		return errmsg_set(err, ended, "memory ran out at the end of the capture");
	return flushed < 0 ? flushed : closed;
}
