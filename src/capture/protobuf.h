/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protobuf wire format, written and read by hand: captures are on the hot path of a recording
 * and of every report. The writer appends to a strbuf, whose status says whether memory ran out;
 * the reader walks the fields of one message and never trusts a length.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define PB_MAX_VARINT 10

/* Wire types that the format still uses; 3 and 4 were groups. */
enum pb_wire {
	PB_WIRE_VARINT = 0,
	PB_WIRE_FIXED64 = 1,
	PB_WIRE_BYTES = 2,
	PB_WIRE_FIXED32 = 5,
};

/* A field's number and wire type in one value, as they are stored: what a decoder switches on. */
#define PB_VARINT(number)  ((uint32_t)(number) << 3 | PB_WIRE_VARINT)
#define PB_FIXED64(number) ((uint32_t)(number) << 3 | PB_WIRE_FIXED64)
#define PB_BYTES(number)   ((uint32_t)(number) << 3 | PB_WIRE_BYTES)

/* Writing. In the header is what each packet needs many times, so that tags become constants. */

/* At most PB_MAX_VARINT bytes from `at` on; returns their end. */
static inline uint8_t *pb_encode(uint8_t *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
	return at;
}

static inline void pb_put_u64(struct strbuf *out, uint32_t number, uint64_t value)
{
	uint8_t *room = strbuf_room(out, 2 * PB_MAX_VARINT);

	if (room)
		strbuf_take(
			out, (size_t)(pb_encode(pb_encode(room, PB_VARINT(number)), value) - room));
}

void pb_put_varint(struct strbuf *out, uint64_t value);
/* A `double` or `fixed64` field, by its bits. */
void pb_put_fixed64(struct strbuf *out, uint32_t number, uint64_t value);
void pb_put_bytes(struct strbuf *out, uint32_t number, const void *bytes, size_t length);
/*
 * A `string` field. Protobuf wants UTF-8 there, and some readers refuse the message otherwise: what
 * is not UTF-8 becomes U+FFFD. A NULL text writes nothing.
 */
void pb_put_text(struct strbuf *out, uint32_t number, const char *text);

/*
 * A nested message: begin, put its fields, end with the value that begin returned. One byte is kept
 * for the length; the few messages that need more are moved up by pb_end().
 */
static inline size_t pb_begin(struct strbuf *out, uint32_t number)
{
	uint8_t *room = strbuf_room(out, PB_MAX_VARINT + 1), *end;

	if (room) {
		end = pb_encode(room, PB_BYTES(number));
		*end++ = 0;
		strbuf_take(out, (size_t)(end - room));
	}
	return out->length;
}

void pb_end_long(struct strbuf *out, size_t begin);

static inline void pb_end(struct strbuf *out, size_t begin)
{
	if (strbuf_status(out) < 0)
		return;
	if (out->length - begin >= 0x80)
		pb_end_long(out, begin);
	else
		out->data[begin - 1] = (char)(out->length - begin);
}

/* Takes back what was appended after `length`, and with it the failure to append more. */
static inline void pb_cut(struct strbuf *out, size_t length)
{
	out->length = length;
	out->status = 0;
}

/* Reading. */

/* Bytes inside the input; `at` is NULL when the field was not there. */
struct pb_bytes {
	const uint8_t *at;
	size_t length;
};

struct pb_field {
	uint32_t tag; /* PB_VARINT(n), PB_BYTES(n) or another wire type of the same form */
	uint64_t value;
	struct pb_bytes bytes;
};

struct pb_cursor {
	const uint8_t *at, *end;
};

/* Of a message that is not there: the end at once. */
static inline struct pb_cursor pb_cursor(struct pb_bytes message)
{
	if (!message.at)
		return (struct pb_cursor){0};
	return (struct pb_cursor){.at = message.at, .end = message.at + message.length};
}

/* Those of more than two bytes. */
int pb_read_long_varint(struct pb_cursor *cursor, uint64_t *ret_value);

/* Returns 1 and moves on, or -EBADMSG when the varint is cut off or longer than 64 bits. */
static inline int pb_read_varint(struct pb_cursor *cursor, uint64_t *ret_value)
{
	const uint8_t *at = cursor->at;
	size_t left = (size_t)(cursor->end - at);

	if (left && at[0] < 0x80) {
		*ret_value = at[0];
		cursor->at = at + 1;
		return 1;
	}
	if (left < 2 || at[1] >= 0x80)
		return pb_read_long_varint(cursor, ret_value);
	*ret_value = (uint64_t)at[1] << 7 | (at[0] & 0x7f);
	cursor->at = at + 2;
	return 1;
}

/* Those of fixed width, whose tag was read. */
int pb_next_fixed(struct pb_cursor *cursor, struct pb_field *ret_field);

/*
 * The next field: 1, 0 at the end of the message, -EBADMSG when the bytes are no message (cut-off
 * or overlong values, field number 0, groups).
 */
static inline __attribute__((always_inline)) int pb_next(
	struct pb_cursor *cursor, struct pb_field *ret_field)
{
	uint64_t tag, length;

	if (cursor->at >= cursor->end)
		return 0;
	if (pb_read_varint(cursor, &tag) < 0 || tag > UINT32_MAX || tag < PB_VARINT(1))
		return -EBADMSG;
	ret_field->tag = (uint32_t)tag;
	if ((tag & 7) == PB_WIRE_VARINT)
		return pb_read_varint(cursor, &ret_field->value);
	if ((tag & 7) != PB_WIRE_BYTES)
		return pb_next_fixed(cursor, ret_field);
	if (pb_read_varint(cursor, &length) < 0 || length > (size_t)(cursor->end - cursor->at))
		return -EBADMSG;
	ret_field->bytes = (struct pb_bytes){.at = cursor->at, .length = length};
	cursor->at += length;
	return 1;
}
