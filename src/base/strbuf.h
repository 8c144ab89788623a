/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte string, always NUL-terminated. Running out of memory is remembered: later writes
 * do nothing and strbuf_status() returns -ENOMEM, so a writer checks once at its end.
 */
#pragma once

#include <stdarg.h>
#include <stdint.h>

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
void strbuf_vaddf(struct strbuf *buffer, const char *format, va_list arguments);
/* Room for `length` bytes at the end, to be written by the caller; NULL when out of memory. */
void *strbuf_extend(struct strbuf *buffer, size_t length);
/* When a write to `part` was lost, `buffer`, which is made of it, counts as lost, too. */
void strbuf_inherit_status(struct strbuf *buffer, const struct strbuf *part);
void strbuf_clear(struct strbuf *buffer);
void strbuf_done(struct strbuf *buffer);

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
