/* SPDX-License-Identifier: Apache-2.0 */
/* Inflating with a bound: compressed packets in one piece, gzip files piece by piece. */
#pragma once

#include <libdeflate.h>
#include <zlib.h>

#include "base/strbuf.h"
#include "capture/protobuf.h"

struct inflater {
	z_stream gzip;
	bool has_gzip;
	struct libdeflate_decompressor *packets; /* NULL: none was inflated yet */
	struct strbuf out;
};

/* Before inflater_step(), of one that is zero-initialised. Returns 0 or -ENOMEM. */
int inflater_open_gzip(struct inflater *inflater);
void inflater_done(struct inflater *inflater);

/*
 * Inflates one whole zlib stream into inflater->out, whose bytes stay until the next call. -EBADMSG
 * when the stream is damaged or cut, -EFBIG beyond max_bytes, -ENOMEM.
 */
int inflater_run(struct inflater *inflater, struct pb_bytes deflated, size_t max_bytes);

/*
 * Takes some of `input` and appends at most `max_bytes` to inflater->out. Returns 1 when there may
 * be more, 0 at the end of the input (the stream may be cut there), -EBADMSG, -ENOMEM. Concatenated
 * gzip members read as one.
 */
int inflater_step(struct inflater *inflater, struct pb_bytes *input, size_t max_bytes);
