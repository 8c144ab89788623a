/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte string, always NUL-terminated. Running out of memory is remembered: later writes
 * do nothing and strbuf_status() returns -ENOMEM, so a writer checks once at its end.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/macros.h"

struct strbuf {
	char *data; /* NULL until the first write; use strbuf_cstr() */
	size_t length, capacity;
	int status;
};

void strbuf_add(struct strbuf *buffer, const char *text);
void strbuf_add_bytes(struct strbuf *buffer, const void *bytes, size_t length);
void strbuf_add_char(struct strbuf *buffer, char character);
void strbuf_addf(struct strbuf *buffer, const char *format, ...) _printf_(2, 3);
/* Thousands apart: "1,234,567". */
void strbuf_add_count(struct strbuf *buffer, uint64_t count);
void strbuf_vaddf(struct strbuf *buffer, const char *format, va_list arguments);
/* Room for `length` bytes at the end, to be written by the caller; NULL when out of memory. */
void *strbuf_extend(struct strbuf *buffer, size_t length);
/* Makes room for so many bytes more. Returns 0 or -ENOMEM, which is remembered. */
int strbuf_reserve(struct strbuf *buffer, size_t extra);
/* When a write to `part` was lost, `buffer`, which is made of it, counts as lost, too. */
void strbuf_inherit_status(struct strbuf *buffer, const struct strbuf *part);
void strbuf_clear(struct strbuf *buffer);
void strbuf_done(struct strbuf *buffer);

/*
 * For many short writes: room for at most so many bytes at the end, then how many of them were
 * written. NULL when out of memory.
 */
static inline void *strbuf_room(struct strbuf *buffer, size_t most)
{
	if (buffer->status || most >= buffer->capacity - buffer->length) {
		if (strbuf_reserve(buffer, most) < 0)
			return NULL;
	}
	return buffer->data + buffer->length;
}

static inline void strbuf_take(struct strbuf *buffer, size_t length)
{
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
}

/* The text, "" when nothing was written. Valid until the next write. */
static inline const char *strbuf_cstr(const struct strbuf *buffer)
{
	return buffer->data ? buffer->data : "";
}

/* 0, or -ENOMEM when a write was lost. */
static inline int strbuf_status(const struct strbuf *buffer)
{
	return buffer->status;
}

#define _cleanup_strbuf_ _cleanup_(strbuf_done)

static inline bool text_ends_in(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}
