/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/writer/output.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "capture/fields.h"
#include "capture/protobuf.h"

/*
 * Perfetto takes at most 512 KB in one compressed packet. A chunk is sealed once it has this size,
 * and its last packet is smaller than this, so that twice this size, deflated in vain, still fits.
 */
#define CHUNK_BYTES ((size_t)224 * 1024)
/*
 * Of 119 bytes of a kernel, level 1 leaves 36 for 0.6 us of CPU time, level 6 leaves 32 for 2 us.
 * zlib's level 1 leaves as much, for 1.4 us.
 */
#define COMPRESSION_LEVEL 1
/* That is some 5 % of a CPU. Beyond it packets go as they are: late collectors lose records. */
#define DEFLATED_BYTES_PER_S ((size_t)8 << 20)

int output_open(struct output *output, const char *path, bool compress,
	const struct output_how *how, struct errmsg *err)
{
	struct errmsg reason = {""};
	int r;

	*output = (struct output){.place = OUTPUT_PLACE_NONE};
	output->path = strdup(path);
	if (!output->path)
		return errmsg_set(err, -ENOMEM, "cannot create %s: out of memory", path);
	if (compress)
		output->compressor = libdeflate_alloc_compressor(COMPRESSION_LEVEL);
	if (compress && !output->compressor)
		return errmsg_set(err, -ENOMEM, "cannot create %s: out of memory", path);
	r = output_place_open(&output->place, path, how, &reason);
	if (r < 0)
		return errmsg_set(
			err, r, "cannot create %s: %s; %s", path, reason.text, output_remedy(r));
	return 0;
}

static int output_fail(struct output *output, int error)
{
	output->failure = error;
	if (output->place.temporary) /* it will be removed */
		return errmsg_set(&output->failure_message, error, "cannot write %s: %s; %s",
			output->path, strerror(-error), output_remedy(error));
	return errmsg_set(&output->failure_message, error,
		"cannot write %s: %s; it holds what was recorded up to byte %llu; %s", output->path,
		strerror(-error), (unsigned long long)output->file_bytes, output_remedy(error));
}

/* The path of the name that the file has got in place of the one that was asked for. */
static int follow_name(struct output *output, struct errmsg *err)
{
	const char *name = output->place.name;
	size_t folder = (size_t)(path_base_name(output->path) - output->path);
	char *path;

	if (asprintf(&path, "%.*s%s", (int)folder, output->path, name) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out; the capture is %s", name);
	free(output->path);
	output->path = path;
	return 0;
}

int output_name(struct output *output, struct errmsg *err)
{
	int r = output_place_name(&output->place);

	if (r < 0)
		output_fail(output, r);
	if (r < 0 && err)
		*err = output->failure_message;
	return r < 0 || !output->place.is_another ? r : follow_name(output, err);
}

int output_close(struct output *output, struct errmsg *err)
{
	int fd = TAKE_FD(output->place.fd);

	if (fd >= 0 && close(fd) < 0 && errno != EINTR && !output->failure)
		output_fail(output, -errno);
	if (fd >= 0 && !output->failure)
		return output_name(output, err);
	if (output->failure && err)
		*err = output->failure_message;
	return output->failure;
}

void output_done(struct output *output)
{
	output_place_done(&output->place);
	libdeflate_free_compressor(output->compressor);
	strbuf_done(&output->packets);
	strbuf_done(&output->ready);
	free(output->path);
}

/* Appends one compressed packet that holds `length` bytes of packets. */
static int output_deflate(struct output *output, const char *packets, size_t length)
{
	struct libdeflate_compressor *compressor = output->compressor;
	size_t bound = libdeflate_zlib_compress_bound(compressor, length);
	size_t before = output->ready.length, packet, field, deflated = 0;
	void *room;

	packet = pb_begin(&output->ready, TRACE_PACKET);
	field = pb_begin(&output->ready, PACKET_COMPRESSED);
	room = strbuf_extend(&output->ready, bound);
	if (room)
		deflated = libdeflate_zlib_compress(compressor, packets, length, room, bound);
	if (deflated) {
		output->ready.length -= bound - deflated;
		pb_end(&output->ready, field);
		pb_end(&output->ready, packet);
		if (strbuf_status(&output->ready) == 0)
			return 0;
	}
	pb_cut(&output->ready, before);
	return -ENOMEM;
}

/* Is there time to deflate so many bytes more? */
static bool has_time(struct output *output, size_t bytes)
{
	uint64_t now_ns;

	if (output->unhurried)
		return true;
	now_ns = monotonic_now_ns();
	if (now_ns - output->second_ns >= NS_PER_S) {
		output->second_ns = now_ns;
		/* Far too much: to deflate a small part of it would only take time. */
		output->is_flooded = output->second_bytes > 2 * DEFLATED_BYTES_PER_S;
		output->second_bytes = 0;
	}
	output->second_bytes += bytes;
	return !output->is_flooded && output->second_bytes <= DEFLATED_BYTES_PER_S;
}

/* Moves the packets before `end` to `ready`; what follows stays. On failure they stay too. */
static int output_seal(struct output *output, size_t end)
{
	struct strbuf *packets = &output->packets;
	size_t before = output->ready.length;
	int result = 0;

	if (end == 0)
		return 0;
	if (output->compressor && end <= 2 * CHUNK_BYTES && has_time(output, end))
		result = output_deflate(output, packets->data, end);
	else
		strbuf_add_bytes(&output->ready, packets->data, end);
	if (result < 0 || strbuf_status(&output->ready) < 0) {
		pb_cut(&output->ready, before);
		return -ENOMEM;
	}
	packets->length -= end;
	memmove(packets->data, packets->data + end, packets->length);
	return 0;
}

void output_begin_packet(struct output *output)
{
	output->packet_start = output->packets.length;
	output->packet_content = pb_begin(&output->packets, TRACE_PACKET);
}

int output_end_packet(struct output *output)
{
	struct strbuf *packets = &output->packets;

	pb_end(packets, output->packet_content);
	if (strbuf_status(packets) < 0) {
		pb_cut(packets, output->packet_start);
		return -ENOMEM;
	}
	if (output->failure)
		strbuf_clear(packets);
	if (packets->length < CHUNK_BYTES)
		return 0;
	/*
	 * A packet that fills a chunk by itself goes alone, so that the others stay within bounds.
	 * Where memory does not suffice to deflate, the packets wait for the next try: they are not
	 * lost, and what they say of the clock holds.
	 */
	if (packets->length - output->packet_start >= CHUNK_BYTES &&
		output_seal(output, output->packet_start) < 0)
		return 0;
	output_seal(output, packets->length);
	return 0;
}

int output_flush(struct output *output, struct errmsg *err)
{
	int result;

	if (output->failure)
		return errmsg_set(err, output->failure, "%s", "");
	if (output_seal(output, output->packets.length) < 0)
		return errmsg_set(err, -ENOMEM, "cannot write %s: out of memory", output->path);
	result = write_all(output->place.fd, output->ready.data, output->ready.length);
	if (result < 0) {
		/* A torn tail would read as truncated; not every file can be cut (a pipe cannot).
		 */
		if (ftruncate(output->place.fd, (off_t)output->file_bytes) < 0)
			errno = 0;
		output_fail(output, result);
		if (err)
			*err = output->failure_message;
	} else {
		output->file_bytes += output->ready.length;
	}
	strbuf_clear(&output->ready);
	return result;
}
