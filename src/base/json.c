/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

size_t utf8_sequence_length(const char *bytes, size_t length)
{
	const unsigned char *cursor = (const unsigned char *)bytes;
	size_t wanted;
	uint32_t code;

	if (!length)
		return 0;
	if (cursor[0] < 0x80)
		return 1;
	if (cursor[0] >= 0xc2 && cursor[0] <= 0xdf)
		wanted = 2, code = cursor[0] & 0x1f;
	else if ((cursor[0] & 0xf0) == 0xe0)
		wanted = 3, code = cursor[0] & 0x0f;
	else if (cursor[0] >= 0xf0 && cursor[0] <= 0xf4)
		wanted = 4, code = cursor[0] & 0x07;
	else
		return 0;
	if (length < wanted)
		return 0;
	for (size_t i = 1; i < wanted; i++) {
		if ((cursor[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (cursor[i] & 0x3f);
	}
	/* Overlong forms, surrogates and values above the last code point are not UTF-8. */
	if ((wanted == 3 && code < 0x800) || (wanted == 4 && (code < 0x10000 || code > 0x10ffff)) ||
		(code >= 0xd800 && code <= 0xdfff))
		return 0;
	return wanted;
}

/* Is it written as it is? */
static bool json_is_plain(char character)
{
	return character >= 0x20 && character < 0x7f && character != '"' && character != '\\';
}

void json_escape(struct strbuf *out, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length;) {
		unsigned char character = (unsigned char)bytes[i];
		size_t sequence, plain = i;

		while (plain < length && json_is_plain(bytes[plain]))
			plain++;
		if (plain > i) {
			strbuf_add_bytes(out, bytes + i, plain - i);
			i = plain;
			continue;
		}
		sequence = utf8_sequence_length(bytes + i, length - i);
		if (character == '"' || character == '\\')
			strbuf_addf(out, "\\%c", character);
		else if (character == '\n')
			strbuf_add(out, "\\n");
		else if (character == '\t')
			strbuf_add(out, "\\t");
		else if (character < 0x20 || character == 0x7f)
			strbuf_addf(out, "\\u%04x", character);
		else if (sequence == 0)
			strbuf_add(out, "\xef\xbf\xbd");
		else if (character == 0xc2 && (unsigned char)bytes[i + 1] < 0xa0)
			/* A control character, which a terminal obeys. */
			strbuf_addf(out, "\\u%04x", (unsigned char)bytes[i + 1]);
		else
			strbuf_add_bytes(out, bytes + i, sequence);
		i += sequence ? sequence : 1;
	}
}

static void json_indent(struct json_writer *json)
{
	if (!json->pretty)
		return;
	strbuf_add_char(json->out, '\n');
	for (unsigned i = 0; i < json->depth; i++)
		strbuf_add(json->out, "  ");
}

static void json_before_value(struct json_writer *json)
{
	if (json->after_key) {
		json->after_key = false;
		return;
	}
	if (json->depth == 0)
		return;
	if (json->has_items[json->depth - 1])
		strbuf_add_char(json->out, ',');
	json->has_items[json->depth - 1] = true;
	json_indent(json);
}

static void json_begin(struct json_writer *json, char bracket)
{
	json_before_value(json);
	strbuf_add_char(json->out, bracket);
	assert(json->depth < JSON_MAX_DEPTH);
	json->has_items[json->depth++] = false;
}

static void json_end(struct json_writer *json, char bracket)
{
	assert(json->depth > 0);
	if (json->has_items[--json->depth])
		json_indent(json);
	strbuf_add_char(json->out, bracket);
}

void json_begin_object(struct json_writer *json)
{
	json_begin(json, '{');
}

void json_end_object(struct json_writer *json)
{
	json_end(json, '}');
}

void json_begin_array(struct json_writer *json)
{
	json_begin(json, '[');
}

void json_end_array(struct json_writer *json)
{
	json_end(json, ']');
}

void json_key(struct json_writer *json, const char *key)
{
	json_string(json, key);
	strbuf_add(json->out, json->pretty ? ": " : ":");
	json->after_key = true;
}

void json_string_n(struct json_writer *json, const char *bytes, size_t length)
{
	json_before_value(json);
	strbuf_add_char(json->out, '"');
	json_escape(json->out, bytes, length);
	strbuf_add_char(json->out, '"');
}

void json_string(struct json_writer *json, const char *text)
{
	json_string_n(json, text, strlen(text));
}

void json_u64(struct json_writer *json, uint64_t value)
{
	json_before_value(json);
	strbuf_addf(json->out, "%llu", (unsigned long long)value);
}

void json_i64(struct json_writer *json, int64_t value)
{
	json_before_value(json);
	strbuf_addf(json->out, "%lld", (long long)value);
}

void json_bool(struct json_writer *json, bool value)
{
	json_before_value(json);
	strbuf_add(json->out, value ? "true" : "false");
}

void json_null(struct json_writer *json)
{
	json_before_value(json);
	strbuf_add(json->out, "null");
}

void json_double(struct json_writer *json, double value, int digits)
{
	if (!isfinite(value)) {
		json_null(json);
		return;
	}
	json_before_value(json);
	strbuf_addf(json->out, "%.*g", digits, value);
}

void json_member_text(struct json_writer *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text && *text)
		json_string(json, text);
	else
		json_null(json);
}

void json_member_u64(struct json_writer *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

void json_member_known(struct json_writer *json, const char *key, bool known, uint64_t value)
{
	json_key(json, key);
	if (known)
		json_u64(json, value);
	else
		json_null(json);
}

void json_member_double(struct json_writer *json, const char *key, double value)
{
	json_key(json, key);
	json_double(json, value, 9);
}
