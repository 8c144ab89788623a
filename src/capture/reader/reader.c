/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/reader/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/input_file.h"
#include "capture/fields.h"
#include "capture/reader/state.h"

/* What a compressed packet may become; Perfetto puts at most 512 KB in one. */
#define INFLATED_MAX   ((size_t)16 << 20)
#define PACKET_MAX     ((size_t)64 << 20)
#define INPUT_CHUNK    ((size_t)1 << 20)
#define INFLATE_CHUNK  ((size_t)256 * 1024)
#define PROGRESS_CALLS 200

/*
 * Where the bytes come from. Files are read, not mapped: a recording may cut or replace the file
 * while it is being read, which must not be a SIGBUS.
 */
struct source {
	int fd;                 /* -1: memory */
	struct pb_bytes memory; /* what is left of it */
	uint8_t *chunk;
};

/* The next piece of input: 1, 0 at the end, or a negative errno. */
static int source_next(struct source *source, struct pb_bytes *ret_input)
{
	ssize_t got;

	if (source->fd < 0) {
		*ret_input = source->memory;
		source->memory.length = 0;
		return ret_input->length > 0;
	}
	do {
		got = read(source->fd, source->chunk, INPUT_CHUNK);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	*ret_input = (struct pb_bytes){.at = source->chunk, .length = (size_t)got};
	return got > 0;
}

static int report_progress(struct reader *reader)
{
	if (reader->input_bytes < reader->next_progress)
		return 0;
	reader->next_progress = reader->input_bytes + reader->total_bytes / PROGRESS_CALLS + 1;
	return reader_visit(reader, progress, reader->input_bytes, reader->total_bytes);
}

/*
 * The start of a packet: 1 and its content, and the cursor moves on; 0 when it is cut off, with
 * what there is of the content; -EBADMSG.
 */
static int read_frame(struct reader *reader, struct pb_cursor *cursor, struct pb_bytes *ret_content)
{
	struct pb_cursor start = *cursor;
	size_t left = (size_t)(cursor->end - cursor->at);
	uint64_t length;

	*ret_content = (struct pb_bytes){.at = cursor->end};
	if (*start.at++ != PB_BYTES(TRACE_PACKET))
		return reader_corrupt(reader, "there is no packet");
	if (pb_read_varint(&start, &length) < 0)
		return left <= PB_MAX_VARINT
			       ? 0
			       : reader_corrupt(reader, "a packet's length is not a number");
	if (length > PACKET_MAX)
		return reader_corrupt(reader, "a packet claims to be larger than 64 MiB");
	left = (size_t)(start.end - start.at);
	*ret_content = (struct pb_bytes){.at = start.at, .length = MIN(length, left)};
	if (length > left)
		return 0;
	cursor->at = start.at + length;
	return 1;
}

/* The packets of an inflated compressed packet: whole ones, and none compressed again. */
static int read_inflated(struct reader *reader, struct pb_bytes packets)
{
	struct pb_cursor cursor = pb_cursor(packets);

	while (cursor.at < cursor.end) {
		struct pb_bytes content;
		struct packet packet;
		int result = read_frame(reader, &cursor, &content);

		if (result <= 0)
			return reader_corrupt(reader, "the packets compressed in it are damaged");
		result = reader_decode_packet(content, false, &packet);
		if (result == 0 && packet.has_rest && packet.rest.compressed.at)
			return reader_corrupt(reader, "a compressed packet holds another one");
		if (result == 0)
			result = reader_take_packet(reader, &packet);
		if (result < 0)
			return result;
	}
	return 0;
}

static int read_compressed(struct reader *reader, struct pb_bytes deflated)
{
	struct inflater *inflater = &reader->inflater;
	int result = inflater_run(inflater, deflated, INFLATED_MAX);

	if (result == -EFBIG)
		return reader_corrupt(reader, "a compressed packet becomes larger than 16 MiB");
	if (result == -EBADMSG)
		return reader_corrupt(reader, "a compressed packet does not inflate");
	if (result < 0)
		return result;
	return read_inflated(
		reader, (struct pb_bytes){.at = (const uint8_t *)strbuf_cstr(&inflater->out),
				.length = inflater->out.length});
}

static int read_packet(struct reader *reader, struct pb_bytes content)
{
	struct packet packet;
	int result = reader_decode_packet(content, !reader->is_trace, &packet);

	if (result < 0)
		return result;
	reader->is_trace = true;
	if (packet.has_rest && packet.rest.compressed.at)
		return read_compressed(reader, packet.rest.compressed);
	return reader_take_packet(reader, &packet);
}

/* Reads the whole packets in `pending`, and leaves the beginning of the next one there. */
static int read_pending(struct reader *reader, struct strbuf *pending)
{
	const uint8_t *begin = (const uint8_t *)strbuf_cstr(pending);
	struct pb_cursor cursor = {.at = begin, .end = begin + pending->length};
	int result = 1;

	while (result > 0 && cursor.at < cursor.end) {
		const uint8_t *packet = cursor.at;
		struct pb_bytes content;

		result = read_frame(reader, &cursor, &content);
		if (result <= 0)
			break;
		result = read_packet(reader, content);
		if (result < 0)
			break;
		reader->packet_offset += (uint64_t)(cursor.at - packet);
		result = 1;
	}
	pending->length -= (size_t)(cursor.at - begin);
	memmove(pending->data, cursor.at, pending->length);
	return result < 0 ? result : report_progress(reader);
}

static int read_plain_input(struct reader *reader, struct strbuf *pending, struct pb_bytes input)
{
	strbuf_add_bytes(pending, input.at, input.length);
	return strbuf_status(pending) < 0 ? -ENOMEM : read_pending(reader, pending);
}

static int read_gzip_input(struct reader *reader, struct inflater *gzip, struct pb_bytes input)
{
	int more = 1, result = 0;

	while (more > 0 && result == 0) {
		more = inflater_step(gzip, &input, INFLATE_CHUNK);
		if (more == -EBADMSG)
			return reader_corrupt(reader, "its gzip data are damaged");
		if (more < 0)
			return more;
		result = read_pending(reader, &gzip->out);
	}
	return result;
}

static bool is_gzip(struct pb_bytes input)
{
	return input.length >= 2 && input.at[0] == 0x1f && input.at[1] == 0x8b;
}

/*
 * Whether what there is of a cut-off first packet is the beginning of a capture: a sequence id, or
 * packets compressed. Text and other formats can look like some packet, but not like these.
 */
static bool begins_capture(struct pb_bytes head)
{
	struct pb_cursor cursor = pb_cursor(head);
	uint64_t tag;

	if (head.length < 2)
		return head.length == 0 || head.at[0] == PB_VARINT(PACKET_SEQUENCE_ID) ||
		       head.at[0] == (uint8_t)(PB_BYTES(PACKET_COMPRESSED) | 0x80);
	return pb_read_varint(&cursor, &tag) > 0 &&
	       (tag == PB_VARINT(PACKET_SEQUENCE_ID) || tag == PB_BYTES(PACKET_COMPRESSED));
}

/* What is left after the last whole packet: nothing, or a packet that was cut off. */
static int read_tail(struct reader *reader, const struct strbuf *pending)
{
	const uint8_t *begin = (const uint8_t *)strbuf_cstr(pending);
	struct pb_cursor cursor = {.at = begin, .end = begin + pending->length};
	struct pb_bytes head;

	if (pending->length == 0)
		return reader->is_trace ? 0 : reader_corrupt(reader, "the file ends");
	if (read_frame(reader, &cursor, &head) < 0)
		return -EBADMSG;
	if (!reader->is_trace && !begins_capture(head))
		return -EBADMSG;
	reader->result->truncated = true;
	reader->result->truncated_at = reader->packet_offset;
	return 0;
}

static int read_source(struct reader *reader, struct source *source)
{
	_cleanup_(inflater_done) struct inflater gzip = {0};
	_cleanup_strbuf_ struct strbuf plain = {0};
	struct pb_bytes input = {0};
	int more, result = 0;

	while (result == 0 && (more = source_next(source, &input)) > 0) {
		if (reader->input_bytes == 0 && is_gzip(input))
			result = inflater_open_gzip(&gzip);
		reader->input_bytes += input.length;
		if (result < 0)
			break;
		result = gzip.has_gzip ? read_gzip_input(reader, &gzip, input)
				       : read_plain_input(reader, &plain, input);
	}
	if (result == 0 && more == 0)
		result = read_tail(reader, gzip.has_gzip ? &gzip.out : &plain);
	return result < 0 ? result : more;
}

static void reader_done(struct reader *reader)
{
	array_foreach (&reader->sequences, sequence)
		sequence_free(*sequence);
	array_done(&reader->sequences);
	map_u64_done(&reader->sequence_index);
	intern_done(&reader->strings);
	intern_done(&reader->mappings);
	clocks_done(&reader->clocks);
	array_done(&reader->frame_ids);
	map_u64_done(&reader->track_index);
	array_done(&reader->tracks);
	array_done(&reader->range_fields);
	array_done(&reader->categories);
	inflater_done(&reader->inflater);
	reader_gpu_slices_done(reader);
}

/* The sentence for a read that failed. */
static int explain(const struct reader *reader, int error, struct errmsg *err)
{
	unsigned long long offset = reader->packet_offset;

	if (error == -EBADMSG && !reader->is_trace)
		return errmsg_set(err, error,
			"%s is not a sonde capture: at offset 0 %s; `sonde record -o FILE` makes "
			"one; traces of PyTorch's profiler (JSON) are read, too",
			reader->name, reader->cause ? reader->cause : "there is no packet");
	if (error == -EBADMSG)
		return errmsg_set(err, error,
			"%s is corrupt at offset %llu: %s; copy the file again, or record again",
			reader->name, offset,
			reader->cause ? reader->cause : "a packet's fields do not decode");
	if (error == -EOPNOTSUPP)
		return errmsg_set(err, error,
			"cannot read %s: its packets from offset %llu on are compressed with zstd; "
			"unpack it with Perfetto's `traceconv decompress_packets` first",
			reader->name, offset);
	return errmsg_set(err, error, "cannot read %s beyond offset %llu: %s", reader->name, offset,
		strerror(-error));
}

static int read_from(struct source *source, uint64_t total_bytes, const char *name,
	const struct capture_visitor *visitor, void *context,
	struct capture_read_result *ret_result, struct errmsg *err)
{
	struct capture_read_result unused;
	_cleanup_(reader_done) struct reader reader = {.name = name,
		.visitor = visitor,
		.context = context,
		.result = ret_result ? ret_result : &unused,
		.total_bytes = total_bytes};
	int result;

	*reader.result = (struct capture_read_result){0};
	result = read_source(&reader, source);
	reader.result->bytes = reader.packet_offset;
	if (result < 0 && !reader.stopped)
		return explain(&reader, result, err);
	return result;
}

int capture_read_memory(const void *bytes, size_t length, const char *name_for_messages,
	const struct capture_visitor *visitor, void *context,
	struct capture_read_result *ret_result, struct errmsg *err)
{
	struct source source = {.fd = -1, .memory = {.at = bytes, .length = length}};

	return read_from(&source, length, name_for_messages, visitor, context, ret_result, err);
}

/* Opens a regular file: reading a terminal or a pipe would wait for ever. */
static int open_capture(const char *path, uint64_t *ret_bytes, struct errmsg *err)
{
	_cleanup_close_ int fd = input_open(path, O_NONBLOCK);
	struct stat status;

	if (fd < 0 && errno == EACCES)
		return errmsg_set(err, -EACCES,
			"cannot read %s: Permission denied; a capture is private to the user who "
			"recorded it: use sudo, or record with --group GROUP",
			path);
	if (fd < 0 || fstat(fd, &status) < 0)
		return errmsg_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	if (S_ISDIR(status.st_mode))
		return errmsg_set(err, -EISDIR,
			"cannot read %s: it is a directory; name a capture in it", path);
	if (!S_ISREG(status.st_mode))
		return errmsg_set(err, -EINVAL,
			"cannot read %s: it is not a regular file; name a capture that `sonde "
			"record -o FILE` made",
			path);
	*ret_bytes = (uint64_t)status.st_size;
	return TAKE_FD(fd);
}

int capture_read(const char *path, const struct capture_visitor *visitor, void *context,
	struct capture_read_result *ret_result, struct errmsg *err)
{
	_cleanup_free_ uint8_t *chunk = malloc(INPUT_CHUNK);
	_cleanup_close_ int fd = -1;
	struct source source = {.chunk = chunk};
	uint64_t total_bytes = 0;

	if (ret_result)
		*ret_result = (struct capture_read_result){0};
	if (!chunk)
		return errmsg_set(err, -ENOMEM, "cannot read %s: out of memory", path);
	fd = open_capture(path, &total_bytes, err);
	if (fd < 0)
		return fd;
	source.fd = fd;
	return read_from(&source, total_bytes, path, visitor, context, ret_result, err);
}

/* ---- a capture that grows ---- */

struct capture_stream {
	struct reader reader;
	struct capture_read_result result;
	struct strbuf pending; /* the beginning of the next packet */
	char *name;
	int failure;
};

int capture_stream_open(struct capture_stream **ret_stream, const char *name,
	const struct capture_visitor *visitor, void *context)
{
	struct capture_stream *stream = calloc(1, sizeof(*stream));

	if (stream)
		stream->name = strdup(name);
	if (!stream || !stream->name) {
		free(stream);
		return -ENOMEM;
	}
	stream->reader = (struct reader){.name = stream->name,
		.visitor = visitor,
		.context = context,
		.result = &stream->result};
	*ret_stream = stream;
	return 0;
}

struct capture_stream *capture_stream_close(struct capture_stream *stream)
{
	if (stream) {
		reader_done(&stream->reader);
		strbuf_done(&stream->pending);
		free(stream->name);
		free(stream);
	}
	return NULL;
}

int capture_stream_take(
	struct capture_stream *stream, const void *bytes, size_t length, struct errmsg *err)
{
	struct reader *reader = &stream->reader;
	int r = stream->failure;

	if (r == 0) {
		reader->input_bytes += length;
		reader->total_bytes = reader->input_bytes;
		r = read_plain_input(
			reader, &stream->pending, (struct pb_bytes){.at = bytes, .length = length});
	}
	stream->failure = r;
	return r < 0 && !reader->stopped ? explain(reader, r, err) : r;
}
