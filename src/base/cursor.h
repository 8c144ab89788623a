/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading foreign little-endian bytes in order. A read past the end yields 0, moves nothing and is
 * remembered in `failed`, so that a parser checks once per record.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *at, *end;
	bool failed;
};

static inline size_t cursor_left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/* Little-endian integer of 1 to 8 bytes. */
static inline uint64_t cursor_unsigned(struct cursor *cursor, size_t bytes)
{
	uint64_t value = 0;

	if (cursor_left(cursor) < bytes) {
		cursor->failed = true;
		return 0;
	}
	memcpy(&value, cursor->at, bytes);
	cursor->at += bytes;
	return value;
}

/* The same, sign-extended. */
static inline int64_t cursor_signed(struct cursor *cursor, size_t bytes)
{
	unsigned shift = 64 - 8 * (unsigned)bytes;

	return (int64_t)(cursor_unsigned(cursor, bytes) << shift) >> shift;
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
	if (cursor->at == cursor->end) {
		cursor->failed = true;
		return 0;
	}
	return *cursor->at++;
}

/* LEB128 values of more than 64 bits lose their upper ones; longer than 10 bytes they fail. */
static inline uint64_t cursor_uleb(struct cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte = cursor_u8(cursor);

		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return value;
	}
	cursor->failed = true;
	return 0;
}

static inline int64_t cursor_sleb(struct cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte = cursor_u8(cursor);

		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (byte & 0x80)
			continue;
		if ((byte & 0x40) && shift + 7 < 64)
			value |= ~0ULL << (shift + 7);
		return (int64_t)value;
	}
	cursor->failed = true;
	return 0;
}

static inline void cursor_skip(struct cursor *cursor, uint64_t bytes)
{
	if (cursor_left(cursor) < bytes) {
		cursor->failed = true;
		return;
	}
	cursor->at += bytes;
}

/* A cursor over the next `bytes` bytes, which `cursor` skips. */
static inline struct cursor cursor_split(struct cursor *cursor, uint64_t bytes)
{
	struct cursor part = {.at = cursor->at, .end = cursor->at};

	cursor_skip(cursor, bytes);
	part.end = cursor->at;
	part.failed = cursor->failed;
	return part;
}
