/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading JSON that may be damaged, piece by piece: the caller asks for the next member, item or
 * value, and nothing is built. Bytes are where the caller has them, of a whole file or of a window
 * on it. Control characters and bytes that are no UTF-8 are taken as they are in
 * strings, and for space between them, and a comma that is
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

#include "base/json_scan.h"
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
static inline enum json_status json_reader_enter(struct json_reader *reader, char bracket);
/*
 * To the next member's value, or JSON_DONE. What is left of the value before is the caller's to
 * pass over.
 */
static inline enum json_status json_reader_member(
	struct json_reader *reader, struct json_text *ret_key);
/* To the next item of an array, or JSON_DONE. */
static inline enum json_status json_reader_item(struct json_reader *reader);
/*
 * How the next value begins: '{', '[', '"', or another character, of a number or a word. 0 where
 * the bytes end.
 */
static inline char json_reader_peek(struct json_reader *reader);
/* A string: its text without quotes. */
static inline enum json_status json_reader_string(
	struct json_reader *reader, struct json_text *ret_text);
/*
 * Fast ways to read what most numbers are, digits alone, and digits with up to three decimals, as
 * 1000 times their value. False, with the reader where it was, when the next value is something
 * else, or too near to the end to tell: json_reader_value() reads those.
 */
static inline bool json_reader_u64(struct json_reader *reader, uint64_t *ret_value);
static inline bool json_reader_thousandths(struct json_reader *reader, int64_t *ret_value);
/* Passes over any value, of any depth: its bytes, of a string with its quotes. */
static inline enum json_status json_reader_value(
	struct json_reader *reader, struct json_text *ret_text);

/*
 * What stood between the values of two members, to compare with what stands there now: programs
 * write the same members in the same way again and again, and comparing is much faster than
 * reading. Zero-initialise to match nothing.
 */
struct json_guess {
	char text[32];
	uint32_t mask; /* a bit for each byte of the text */
	uint8_t length;
	uint8_t key_offset; /* of the quote before the key */
	uint16_t id;        /* the caller's name for this member */
};

/* True, and the reader is at the value, when the text is the same. */
static inline bool json_reader_guess(struct json_reader *reader, const struct json_guess *guess);
/* The text from `begin`, behind a value, to the reader, before the next one. */
static inline void json_reader_learn(const struct json_reader *reader, const char *begin,
	const struct json_text *key, uint16_t id, struct json_guess *guess);

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

/* The parts below are for the functions above. */

/* The reader is behind the opening quote; of any string. */
enum json_status json_reader_rest_of_string(struct json_reader *reader, struct json_text *ret_text);
/* The reader is at the opening bracket. */
enum json_status json_reader_container(struct json_reader *reader, struct json_text *ret_text);
/* The reader is at a comma, the closing bracket or what else follows a value. */
enum json_status json_reader_separator(struct json_reader *reader, char closing);

/* Most strings have no backslash. */
static inline enum json_status json_reader_after_quote_(
	struct json_reader *reader, struct json_text *ret_text)
{
	const char *quote = json_find_quote(reader->at, reader->end);

	if (quote == reader->end || *quote != '"' || reader->lenient)
		return json_reader_rest_of_string(reader, ret_text);
	ret_text->bytes = reader->at;
	ret_text->length = (size_t)(quote - reader->at);
	ret_text->escaped = false;
	reader->at = quote + 1;
	return JSON_OK;
}

static inline enum json_status json_reader_next_(struct json_reader *reader, char closing)
{
	const char *at = json_find_token(reader->at, reader->end), *next;

	if (at < reader->end && *at == ',' && !reader->fresh) {
		next = json_find_token(at + 1, reader->end);
		if (next < reader->end && *next != ',' && *next != closing) {
			reader->at = next;
			return JSON_OK;
		}
	}
	reader->at = at;
	return json_reader_separator(reader, closing);
}

static inline enum json_status json_reader_enter(struct json_reader *reader, char bracket)
{
	const char *at = json_find_token(reader->at, reader->end);

	if (at == reader->end)
		return JSON_MORE;
	if (*at != bracket)
		return JSON_BAD;
	reader->at = at + 1;
	reader->fresh = true;
	return JSON_OK;
}

static inline enum json_status json_reader_member(
	struct json_reader *reader, struct json_text *ret_key)
{
	enum json_status status = json_reader_next_(reader, '}');
	const char *at;

	if (status != JSON_OK)
		return status;
	if (*reader->at != '"')
		return JSON_BAD;
	reader->at++;
	status = json_reader_after_quote_(reader, ret_key);
	if (status != JSON_OK)
		return status;
	at = json_find_token(reader->at, reader->end);
	if (at == reader->end)
		return JSON_MORE;
	if (*at != ':')
		return JSON_BAD;
	reader->at = at = json_find_token(at + 1, reader->end);
	return at == reader->end ? JSON_MORE : JSON_OK;
}

static inline enum json_status json_reader_item(struct json_reader *reader)
{
	return json_reader_next_(reader, ']');
}

static inline char json_reader_peek(struct json_reader *reader)
{
	reader->at = json_find_token(reader->at, reader->end);
	return reader->at == reader->end ? '\0' : *reader->at;
}

static inline enum json_status json_reader_string(
	struct json_reader *reader, struct json_text *ret_text)
{
	char first = json_reader_peek(reader);

	if (first != '"')
		return reader->at == reader->end ? JSON_MORE : JSON_BAD;
	reader->at++;
	return json_reader_after_quote_(reader, ret_text);
}

static inline enum json_status json_reader_scalar_(
	struct json_reader *reader, struct json_text *ret_text)
{
	const char *begin = reader->at, *at = json_find_scalar_end(begin, reader->end);

	if (at == reader->end && !reader->is_last)
		return JSON_MORE;
	if (at == begin)
		return JSON_BAD;
	ret_text->bytes = begin;
	ret_text->length = (size_t)(at - begin);
	ret_text->escaped = false;
	reader->at = at;
	return JSON_OK;
}

static inline enum json_status json_reader_value(
	struct json_reader *reader, struct json_text *ret_text)
{
	char first = json_reader_peek(reader);
	enum json_status status;

	if (reader->at == reader->end)
		return JSON_MORE;
	if (first == '{' || first == '[')
		return json_reader_container(reader, ret_text);
	if (first != '"')
		return json_reader_scalar_(reader, ret_text);
	reader->at++;
	status = json_reader_after_quote_(reader, ret_text);
	if (status == JSON_OK) {
		ret_text->bytes--;
		ret_text->length += 2;
	}
	return status;
}

/* The reader goes to `end`, if a number may end there. */
static inline bool json_reader_end_number_(struct json_reader *reader, const char *end)
{
	if (*end != ',' && *end != '}' && *end != ']' && !json_is_space(*end))
		return false;
	reader->at = end;
	return true;
}

static inline bool json_reader_u64(struct json_reader *reader, uint64_t *ret_value)
{
	const char *at = reader->at;
	unsigned count;

	if (reader->end - at < JSON_DIGITS_ROOM)
		return false;
	count = json_digits(at, ret_value);
	return count && json_reader_end_number_(reader, at + count);
}

static inline bool json_reader_thousandths(struct json_reader *reader, int64_t *ret_value)
{
	static const uint16_t powers[] = {1000, 100, 10, 1};
	const char *at = reader->at;
	uint64_t whole, decimals = 0;
	unsigned count, more = 0;

	if (reader->end - at < JSON_DIGITS_ROOM)
		return false;
	count = json_digits(at, &whole);
	if (!count || whole > INT64_MAX / 1000 - 1)
		return false;
	at += count;
	if (*at == '.') {
		more = json_digits_8(at + 1, &decimals);
		if (!more || more > 3)
			return false;
		at += more + 1;
	}
	*ret_value = (int64_t)(whole * 1000 + decimals * powers[more]);
	return json_reader_end_number_(reader, at);
}

static inline bool json_reader_guess(struct json_reader *reader, const struct json_guess *guess)
{
	const char *at = reader->at;

	if (reader->end - at <= (ptrdiff_t)sizeof(guess->text) || !guess->mask)
		return false;
#ifdef __SSE2__
	const __m128i low = _mm_cmpeq_epi8(json_load(at), json_load(guess->text));
	const __m128i high = _mm_cmpeq_epi8(json_load(at + 16), json_load(guess->text + 16));

	if (~(json_mask(low) | json_mask(high) << 16) & guess->mask)
		return false;
#else
	if (memcmp(at, guess->text, guess->length) != 0)
		return false;
#endif
	/* The text may have had less space before the value. */
	if (json_is_space(at[guess->length]))
		return false;
	reader->at = at + guess->length;
	reader->fresh = false;
	return true;
}

static inline void json_reader_learn(const struct json_reader *reader, const char *begin,
	const struct json_text *key, uint16_t id, struct json_guess *guess)
{
	size_t length = (size_t)(reader->at - begin);

	if (length > sizeof(guess->text))
		return;
	memcpy(guess->text, begin, length);
	guess->mask = UINT32_MAX >> (sizeof(guess->text) - length);
	guess->length = (uint8_t)length;
	guess->key_offset = (uint8_t)(key->bytes - 1 - begin);
	guess->id = id;
}
