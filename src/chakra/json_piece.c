/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/json_piece.h"

#include "base/json.h"

static struct json_text as_json(struct execution_text text)
{
	return (struct json_text){.bytes = text.bytes, .length = text.length, .escaped = true};
}

static struct execution_text as_text(const struct json_text *text)
{
	return (struct execution_text){text->bytes, (uint32_t)text->length};
}

struct json_piece json_piece_elements(struct execution_text text)
{
	struct json_piece piece = {
		.reader = {.at = text.bytes, .is_last = true, .fresh = true},
		.is_open = text.length > 0,
	};

	piece.reader.end = piece.is_open ? text.bytes + text.length : text.bytes;
	return piece;
}

static struct json_piece opened(struct execution_text text, char bracket)
{
	struct json_piece piece = json_piece_elements(text);

	piece.is_open = piece.is_open && json_reader_enter(&piece.reader, bracket) == JSON_OK;
	return piece;
}

struct json_piece json_piece_list(struct execution_text text)
{
	return opened(text, '[');
}

struct json_piece json_piece_object(struct execution_text text)
{
	return opened(text, '{');
}

bool json_piece_next(struct json_piece *piece, struct execution_text *ret_element)
{
	struct json_text element;

	piece->is_open = piece->is_open && json_reader_item(&piece->reader) == JSON_OK &&
			 json_reader_value(&piece->reader, &element) == JSON_OK;
	if (piece->is_open)
		*ret_element = as_text(&element);
	return piece->is_open;
}

bool json_piece_member(
	struct json_piece *piece, struct execution_text *ret_key, struct execution_text *ret_value)
{
	struct json_text key, value;

	piece->is_open = piece->is_open && json_reader_member(&piece->reader, &key) == JSON_OK &&
			 json_reader_value(&piece->reader, &value) == JSON_OK;
	if (piece->is_open) {
		*ret_key = as_text(&key);
		*ret_value = as_text(&value);
	}
	return piece->is_open;
}

bool json_piece_find(
	struct execution_text object, const char *wanted, struct execution_text *ret_value)
{
	struct json_piece piece = json_piece_object(object);
	struct execution_text key, value;

	while (json_piece_member(&piece, &key, &value)) {
		if (execution_text_equals(key, wanted)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

bool json_piece_is_string(struct execution_text value)
{
	return value.length >= 2 && value.bytes[0] == '"' && value.bytes[value.length - 1] == '"';
}

bool json_piece_i64(struct execution_text value, int64_t *ret_number)
{
	struct json_text text = as_json(value);

	return json_text_i64(&text, ret_number) == 0;
}

static void add_utf8(struct strbuf *out, const char *bytes, size_t length)
{
	const char *end = bytes + length;

	while (bytes < end) {
		const char *plain = bytes;
		size_t sequence;

		while (plain < end && *plain && (unsigned char)*plain < 0x80)
			plain++;
		strbuf_add_bytes(out, bytes, (size_t)(plain - bytes));
		bytes = plain;
		if (bytes == end)
			return;
		sequence = *bytes ? utf8_sequence_length(bytes, (size_t)(end - bytes)) : 0;
		strbuf_add_bytes(out, sequence ? bytes : "\xef\xbf\xbd", sequence ?: 3);
		bytes += sequence ?: 1;
	}
}

void json_piece_add_text(struct strbuf *out, struct execution_text value)
{
	_cleanup_strbuf_ struct strbuf plain = {0};
	struct json_text inside;

	if (!json_piece_is_string(value)) {
		add_utf8(out, value.bytes, value.length);
		return;
	}
	inside = as_json(value);
	inside = json_text_inside(&inside);
	json_text_unescape(&plain, &inside);
	add_utf8(out, strbuf_cstr(&plain), plain.length);
	strbuf_inherit_status(out, &plain);
}
