/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a capture that grows, in pieces of any length: messages are JSON, and bounded. */
#include <stdbool.h>
#include <stdlib.h>

#include <string.h>

#include "live/columns.h"
#include "live/live.h"
#include "target.h"

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* The table at `*at` ends within the columns, and *at behind it. */
static void walk(const struct live_data *data, const struct live_table *table, size_t *at)
{
	const char *columns = data->columns;
	uint32_t rows;

	require(*at % 8 == 0 && *at + 8 <= data->columns_length);
	memcpy(&rows, columns + *at, sizeof(rows));
	*at += 8;
	for (size_t i = 0; table->columns[i].bytes; i++)
		*at += (rows * table->columns[i].bytes + 7) / 8 * 8;
	require(*at < data->columns_length);
}

static void check_columns(enum live_message message, const struct live_data *data)
{
	size_t at = 0;

	if (message == LIVE_POWER)
		walk(data, &live_power_points_table, &at);
	if (message == LIVE_TOKENS) {
		walk(data, &live_tokens_tokens_table, &at);
		walk(data, &live_tokens_requests_table, &at);
	}
	require(data->columns_length <= LIVE_MESSAGE_BYTES);
	require(at ? ((const char *)data->columns)[at] == '[' : data->columns_length == 0);
}

/* Quotes and brackets pair: the writer has no other way to go wrong. */
static int see(void *context, enum live_message message, const struct live_data *message_data)
{
	const char *data = message_data->json;
	size_t length = message_data->length, depth = 0;
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
	check_columns(message, message_data);
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
