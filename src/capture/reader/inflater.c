/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/reader/inflater.h"

#include <errno.h>

/* What most packets become at most. Memory that is not written costs nothing. */
#define FIRST_BYTES ((size_t)512 * 1024)
/* Of zlib: a gzip header is expected. */
#define GZIP_BITS (MAX_WBITS + 16)

int inflater_open_gzip(struct inflater *inflater)
{
	if (inflateInit2(&inflater->gzip, GZIP_BITS) != Z_OK)
		return -ENOMEM;
	inflater->has_gzip = true;
	return 0;
}

void inflater_done(struct inflater *inflater)
{
	if (inflater->has_gzip)
		inflateEnd(&inflater->gzip);
	libdeflate_free_decompressor(inflater->packets);
	strbuf_done(&inflater->out);
}

static int from_zlib(int status)
{
	switch (status) {
	case Z_OK:
	case Z_BUF_ERROR: /* no room or no input: no progress, no damage */
	case Z_STREAM_END:
		return 0;
	case Z_MEM_ERROR:
		return -ENOMEM;
	default:
		return -EBADMSG;
	}
}

/* One call of inflate() that appends at most `room` bytes. */
static int inflate_some(struct inflater *inflater, struct pb_bytes *input, size_t room)
{
	z_stream *stream = &inflater->gzip;
	struct strbuf *out = &inflater->out;
	int status;

	stream->next_out = strbuf_extend(out, room);
	if (!stream->next_out)
		return Z_MEM_ERROR;
	stream->avail_out = (uInt)room;
	stream->next_in = (Bytef *)input->at;
	stream->avail_in = input->length > UINT32_MAX ? UINT32_MAX : (uInt)input->length;
	status = inflate(stream, Z_NO_FLUSH);
	out->length -= stream->avail_out;
	input->length -= (size_t)(stream->next_in - input->at);
	input->at = stream->next_in;
	return status;
}

/* How long it becomes is not written anywhere: what does not fit is inflated once more. */
int inflater_run(struct inflater *inflater, struct pb_bytes deflated, size_t max_bytes)
{
	struct strbuf *out = &inflater->out;
	size_t room = MIN(FIRST_BYTES, max_bytes), length;

	if (!inflater->packets)
		inflater->packets = libdeflate_alloc_decompressor();
	if (!inflater->packets)
		return -ENOMEM;
	for (;;) {
		enum libdeflate_result result;
		void *bytes;

		strbuf_clear(out);
		bytes = strbuf_extend(out, room);
		if (!bytes)
			return -ENOMEM;
		result = libdeflate_zlib_decompress(
			inflater->packets, deflated.at, deflated.length, bytes, room, &length);
		if (result == LIBDEFLATE_SUCCESS)
			break;
		if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
			return -EBADMSG;
		if (room == max_bytes)
			return -EFBIG;
		room = MIN(2 * room, max_bytes);
	}
	out->length = length;
	return 0;
}

int inflater_step(struct inflater *inflater, struct pb_bytes *input, size_t max_bytes)
{
	int status = inflate_some(inflater, input, max_bytes);

	if (from_zlib(status) < 0)
		return from_zlib(status);
	if (status == Z_STREAM_END)
		inflateReset(&inflater->gzip);
	/* A full buffer may hide output that the stream still holds. */
	return input->length > 0 || inflater->gzip.avail_out == 0;
}
