/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/protobuf.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"

void pb_put_varint(struct strbuf *out, uint64_t value)
{
	uint8_t *room = strbuf_room(out, PB_MAX_VARINT);

	if (room)
		strbuf_take(out, (size_t)(pb_encode(room, value) - room));
}

void pb_put_fixed64(struct strbuf *out, uint32_t number, uint64_t value)
{
	pb_put_varint(out, PB_FIXED64(number));
	for (unsigned i = 0; i < 8; i++)
		strbuf_add_char(out, (char)(value >> 8 * i));
}

void pb_put_bytes(struct strbuf *out, uint32_t number, const void *bytes, size_t length)
{
	pb_put_varint(out, PB_BYTES(number));
	pb_put_varint(out, length);
	strbuf_add_bytes(out, bytes, length);
}

static bool is_utf8(const char *text, size_t length)
{
	while (length) {
		size_t sequence = utf8_sequence_length(text, length);

		if (sequence == 0)
			return false;
		text += sequence;
		length -= sequence;
	}
	return true;
}

static void put_repaired_text(struct strbuf *out, const char *text, size_t length)
{
	while (length) {
		size_t sequence = utf8_sequence_length(text, length);

		if (sequence)
			strbuf_add_bytes(out, text, sequence);
		else
			strbuf_add(out, "\xef\xbf\xbd");
		text += sequence ? sequence : 1;
		length -= sequence ? sequence : 1;
	}
}

void pb_put_text(struct strbuf *out, uint32_t number, const char *text)
{
	size_t length, begin;

	if (!text)
		return;
	length = strlen(text);
	if (is_utf8(text, length)) {
		pb_put_bytes(out, number, text, length);
		return;
	}
	begin = pb_begin(out, number);
	put_repaired_text(out, text, length);
	pb_end(out, begin);
}

void pb_end_long(struct strbuf *out, size_t begin)
{
	uint8_t head[PB_MAX_VARINT];
	size_t length = out->length - begin;
	size_t head_length = (size_t)(pb_encode(head, length) - head);

	if (!strbuf_extend(out, head_length - 1))
		return;
	memmove(out->data + begin + head_length - 1, out->data + begin, length);
	memcpy(out->data + begin - 1, head, head_length);
}

int pb_read_long_varint(struct pb_cursor *cursor, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; cursor->at < cursor->end && shift < 64; shift += 7) {
		uint8_t byte = *cursor->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		/* The tenth byte has room for the last bit only. */
		if (shift == 63 && byte > 1)
			return -EBADMSG;
		*ret_value = value;
		return 1;
	}
	return -EBADMSG;
}

int pb_next_fixed(struct pb_cursor *cursor, struct pb_field *ret_field)
{
	uint32_t wire = ret_field->tag & 7;
	size_t length = wire == PB_WIRE_FIXED64 ? 8 : 4;

	if ((wire != PB_WIRE_FIXED64 && wire != PB_WIRE_FIXED32) ||
		length > (size_t)(cursor->end - cursor->at))
		return -EBADMSG;
	ret_field->bytes = (struct pb_bytes){.at = cursor->at, .length = length};
	cursor->at += length;
	return 1;
}
