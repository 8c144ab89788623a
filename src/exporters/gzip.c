/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <zlib.h>

#define WINDOW_GZIP (15 + 16) /* the largest window; 16 asks for gzip's header */
#define CHUNK       (256 * 1024)

/* zlib counts input in 32 bits: larger input goes in pieces. */
static int deflate_all(
	struct strbuf *out, z_stream *stream, const unsigned char *bytes, size_t length)
{
	bool last;

	do {
		size_t piece = MIN(length, (size_t)1 << 30);

		stream->next_in = (unsigned char *)bytes;
		stream->avail_in = (uInt)piece;
		bytes += piece;
		length -= piece;
		last = length == 0;
		do {
			unsigned char *room = strbuf_extend(out, CHUNK);

			if (!room)
				return -ENOMEM;
			stream->next_out = room;
			stream->avail_out = CHUNK;
			deflate(stream, last ? Z_FINISH : Z_NO_FLUSH);
			out->length -= stream->avail_out;
			out->data[out->length] = '\0';
		} while (stream->avail_out == 0);
	} while (!last);
	return 0;
}

int gzip_add(struct strbuf *out, const void *bytes, size_t length)
{
	z_stream stream = {0};
	int r;

	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_GZIP, 8,
		    Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	r = deflate_all(out, &stream, bytes, length);
	deflateEnd(&stream);
	return r;
}
