/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a capture that grows, in pieces of any length: messages are JSON, and bounded. */
#include <stdbool.h>
#include <stdlib.h>

#include "live/live.h"
#include "target.h"

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* Quotes and brackets pair: the writer has no other way to go wrong. */
static int see(void *context, enum live_message message, const char *data, size_t length)
{
	size_t depth = 0;
	bool is_text = false;

	(void)context;
	require(message < LIVE_MESSAGE_MAX && length <= LIVE_MESSAGE_BYTES);
	require(length > 1 && data[0] == '{' && data[length - 1] == '}');
	for (size_t i = 0; i < length; i++) {
		require((unsigned char)data[i] >= ' ');
		if (is_text && data[i] == '\\')
			i++;
		else if (data[i] == '"')
			is_text = !is_text;
		else if (!is_text && (data[i] == '{' || data[i] == '['))
			depth++;
		else if (!is_text && (data[i] == '}' || data[i] == ']'))
			require(depth-- > 0);
	}
	require(depth == 0 && !is_text);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	size_t piece = length ? 1 + bytes[length - 1] * (size_t)16 : 1, at = 0;
	struct capture_stream *stream = NULL;
	struct live_figures *figures = NULL;
	struct errmsg err;
	int r = 0;

	if (live_figures_new(&figures, "abc", "fuzz", 1) < 0 ||
		capture_stream_open(&stream, "fuzz", &live_visitor, figures) < 0)
		abort();
	while (r == 0 && at < length) {
		size_t some = piece < length - at ? piece : length - at;

		r = capture_stream_take(stream, bytes + at, some, &err);
		at += some;
		require(live_emit(figures, at % 3, see, NULL) == 0);
	}
	require(live_emit(figures, LIVE_OFTEN | LIVE_SELDOM, see, NULL) == 0);
	capture_stream_close(stream);
	live_figures_free(figures);
	return 0;
}
