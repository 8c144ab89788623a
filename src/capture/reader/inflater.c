/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/reader/inflater.h"

#include <errno.h>

#define FIRST_BYTES ((size_t)64 * 1024)

int inflater_open(struct inflater *inflater, enum inflate_format format)
{
	if (inflater->ready)
		return 0;
	if (inflateInit2(&inflater->stream, MAX_WBITS + (int)format) != Z_OK)
		return -ENOMEM;
	inflater->ready = true;
	return 0;
}

void inflater_done(struct inflater *inflater)
{
	if (inflater->ready)
		inflateEnd(&inflater->stream);
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
	z_stream *stream = &inflater->stream;
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

int inflater_run(struct inflater *inflater, struct pb_bytes deflated, size_t max_bytes)
{
	strbuf_clear(&inflater->out);
	inflateReset(&inflater->stream);
	for (;;) {
		size_t before = inflater->out.length;
		size_t room = MIN(MAX(before, FIRST_BYTES), max_bytes - before);
		int status;

		if (room == 0)
			return -EFBIG;
		status = inflate_some(inflater, &deflated, room);
		if (status == Z_STREAM_END)
			return 0;
		if (from_zlib(status) < 0)
			return from_zlib(status);
		if (inflater->out.length < before + room)
			return -EBADMSG; /* room is left and the end has not come: cut off */
	}
}

int inflater_step(struct inflater *inflater, struct pb_bytes *input, size_t max_bytes)
{
	int status = inflate_some(inflater, input, max_bytes);

	if (from_zlib(status) < 0)
		return from_zlib(status);
	if (status == Z_STREAM_END)
		inflateReset(&inflater->stream);
	/* A full buffer may hide output that the stream still holds. */
	return input->length > 0 || inflater->stream.avail_out == 0;
}
