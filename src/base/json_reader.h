/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading JSON that may be damaged, piece by piece: the caller asks for the next member, item or
 * value, and nothing is built. Bytes are where the caller has them, of a whole file or of a window
 * on it. Control characters and bytes that are no UTF-8 are taken as they are, and a comma that is
 * missing or too many is passed over and counted. Depth costs nothing: there is no recursion and
 * no stack.
 *
 *	struct json_reader reader = {.at = bytes, .end = bytes + length, .is_last = true};
 *	struct json_text key, value;
 *
 *	status = json_reader_enter(&reader, '{');
 *	while (status == JSON_OK && (status = json_reader_member(&reader, &key)) == JSON_OK)
 *		status = json_reader_value(&reader, &value);
 *
 * After JSON_MORE or JSON_BAD the reader stands anywhere: go back to where the value began, with
 * more bytes or to find the next good one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/strbuf.h"

enum json_status {
	JSON_OK,
	JSON_DONE, /* the object or array has ended; the reader is behind its bracket */
	JSON_MORE, /* the bytes ended first; where they are the last, the text is cut off */
	JSON_BAD,
};

struct json_reader {
	const char *at, *end;
	bool is_last; /* no bytes follow `end` */
	/*
	 * Takes a quote inside a string for a part of it unless something follows that may follow a
	 * string: for values that could not be read otherwise.
	 */
	bool lenient;
	bool fresh;      /* nothing of the innermost object or array was read yet */
	uint64_t mended; /* commas missing and too many, quotes inside strings */
};

/* A piece of the text. Of strings: without quotes, as written. */
struct json_text {
	const char *bytes;
	size_t length;
	bool escaped; /* has backslashes: see json_text_unescape() */
};

/* Passes over white space and the opening bracket, '{' or '['. JSON_OK, JSON_MORE, JSON_BAD. */
enum json_status json_reader_enter(struct json_reader *reader, char bracket);
/* To the next member's value, or JSON_DONE. What is left of the value before is the caller's to
 * pass over. */
enum json_status json_reader_member(struct json_reader *reader, struct json_text *ret_key);
/* To the next item of an array, or JSON_DONE. */
enum json_status json_reader_item(struct json_reader *reader);
/*
 * How the next value begins: '{', '[', '"', or another character, of a number or a word. 0 where
 * the bytes end.
 */
char json_reader_peek(struct json_reader *reader);
/* A string: its text without quotes. */
enum json_status json_reader_string(struct json_reader *reader, struct json_text *ret_text);
/* Passes over any value, of any depth: its bytes, of a string with its quotes. */
enum json_status json_reader_value(struct json_reader *reader, struct json_text *ret_text);

static inline bool json_text_equals(const struct json_text *text, const char *word)
{
	return text->length == strlen(word) && memcmp(text->bytes, word, text->length) == 0;
}

static inline bool json_text_is_string(const struct json_text *text)
{
	return text->length >= 2 && text->bytes[0] == '"';
}

/* The text of a value as json_reader_value() gave it: strings without their quotes. */
static inline struct json_text json_text_inside(const struct json_text *text)
{
	if (!json_text_is_string(text))
		return *text;
	return (struct json_text){
		.bytes = text->bytes + 1, .length = text->length - 2, .escaped = text->escaped};
}

/*
 * Appends the string's text with its escapes undone. Half a surrogate pair becomes U+FFFD; an
 * escape that JSON does not have stays as it is.
 */
void json_text_unescape(struct strbuf *out, const struct json_text *text);

/*
 * The number, rounded to the nearest where it has decimals. 0, -EINVAL when the text is no number,
 * -ERANGE when it does not fit.
 */
int json_text_i64(const struct json_text *text, int64_t *ret_value);
int json_text_u64(const struct json_text *text, uint64_t *ret_value);
/*
 * The number times 10^`decimals`, without going through floating point: 3 makes nanoseconds of
 * "12.345" microseconds. Any count of digits, exponents too.
 */
int json_text_fixed(const struct json_text *text, unsigned decimals, int64_t *ret_value);
/* The same of an absolute value up to 2^64 - 1, with its sign apart. */
int json_text_magnitude(
	const struct json_text *text, unsigned decimals, bool *ret_negative, uint64_t *ret_value);
