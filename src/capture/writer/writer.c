/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/writer/writer.h"

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
#include "capture/writer/messages.h"
#include "capture/writer/state.h"

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
	static const struct output_how private = {.access = OUTPUT_PRIVATE};
	struct capture_writer *writer = calloc(1, sizeof(*writer));
	int result;

	assert(!options || options->size >= sizeof(*options));
	if (!writer)
		return errmsg_set(err, -ENOMEM, "cannot create %s: out of memory", path);
	writer->output.place = OUTPUT_PLACE_NONE;
	writer->stack_sample = options && options->stack_sample;
	writer->device_slices = options && options->device_slices;
	writer->row_arguments = options && options->row_arguments;
	writer->sequence_id =
		options && options->sequence ? options->sequence : random_sequence_id();
	result = output_open(&writer->output, path, !options || !options->uncompressed,
		options ? &options->how : &private, err);
	if (result < 0) {
		capture_writer_free(writer);
		return result;
	}
	writer->output.unhurried = options && options->unhurried;
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
	writer->output.place = OUTPUT_PLACE_NONE;
	*ret_writer = writer;
	return 0;
}

int capture_writer_name(struct capture_writer *writer, struct errmsg *err)
{
	return writer->visitor ? 0 : output_name(&writer->output, err);
}

const char *capture_writer_path(const struct capture_writer *writer)
{
	return writer->output.path;
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
	symbol_batch_done(&writer->other_symbols);
	sampled_done(&writer->sampled);
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

int writer_put_message(struct capture_writer *writer, uint32_t field, const struct strbuf *message)
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
	writer->last_time_ns = writer->trace_clock_ns = session->start_time_ns;
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

struct strbuf *writer_begin_timed_packet(struct capture_writer *writer, uint64_t time_ns)
{
	struct strbuf *packet = writer_begin_packet(writer);

	pb_put_u64(packet, PACKET_TIMESTAMP, time_ns);
	pb_put_u64(packet, PACKET_TIMESTAMP_CLOCK, CLOCK_ID_MONOTONIC);
	writer_put_interned(writer, packet);
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
	result = writer_end_packet(writer);
	if (result < 0 || !process->parent_pid || !process->cmdline_count)
		return result;
	put_process_tree(writer_begin_packet(writer), process);
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
	writer->end_time_ns = stats->end_time_ns;
	return writer_put_message(writer, PACKET_SONDE_STATS, &message);
}

int capture_writer_flush(struct capture_writer *writer, struct errmsg *err)
{
	int result;

	if (writer->visitor)
		return 0;
	result = writer_put_interned_packet(writer);
	if (result == 0)
		result = writer_put_symbols(writer);
	if (result < 0)
		return errmsg_set(
			err, result, "cannot write %s: %s", writer->output.path, strerror(-result));
	return output_flush(&writer->output, err);
}

/* What is known of the recording before: all but the file, its options and the events so far. */
static void forget_recording(struct capture_writer *writer)
{
	interning_done(&writer->interning);
	writer->interning = (struct interning){0};
	map_u64_clear(&writer->queues);
	map_u64_clear(&writer->tracks);
	map_u64_clear(&writer->lanes);
	map_u64_clear(&writer->open_steps);
	sampled_done(&writer->sampled);
	writer->sampled = (struct sampled){0};
	writer->open_window = 0;
	writer->window_begin_ns = writer->window_end_ns = writer->end_time_ns = 0;
	memset(writer->recent_launches, 0, sizeof(writer->recent_launches));
	writer->sequence_id = random_sequence_id();
	writer->started = false;
}

int capture_writer_next_recording(struct capture_writer *writer)
{
	int result = writer_end_steps(writer);

	if (result == 0)
		result = writer_put_interned_packet(writer);
	if (result == 0)
		result = writer_put_symbols(writer);
	if (result == 0)
		forget_recording(writer);
	return result;
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
