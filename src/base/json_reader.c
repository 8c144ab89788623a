/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_reader.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

static inline bool is_space(char character)
{
	return character == ' ' || character == '\n' || character == '\r' || character == '\t';
}

static inline const char *skip_space(const char *at, const char *end)
{
	if (at == end || (unsigned char)*at > ' ')
		return at;
#ifdef __SSE2__
	/* Most white space is the indentation of a line. */
	for (; end - at >= 16; at += 16) {
		const __m128i bytes = _mm_loadu_si128((const void *)at);
		const __m128i spaces = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(' '));
		const __m128i lines = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'));
		unsigned others =
			~(unsigned)_mm_movemask_epi8(_mm_or_si128(spaces, lines)) & 0xffff;

		if (others) {
			at += __builtin_ctz(others);
			break;
		}
	}
#endif
	while (at < end && is_space(*at))
		at++;
	return at;
}

/* To the next quote or backslash; `end` when there is none. */
static inline const char *find_quote(const char *at, const char *end)
{
#ifdef __SSE2__
	for (; end - at >= 16; at += 16) {
		const __m128i bytes = _mm_loadu_si128((const void *)at);
		const __m128i quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
		const __m128i slashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
		unsigned found = (unsigned)_mm_movemask_epi8(_mm_or_si128(quotes, slashes));

		if (found)
			return at + __builtin_ctz(found);
	}
#endif
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
}

/* To the next quote or bracket; `end` when there is none. */
static inline const char *find_structure(const char *at, const char *end)
{
#ifdef __SSE2__
	for (; end - at >= 16; at += 16) {
		const __m128i bytes = _mm_loadu_si128((const void *)at);
		/* '[' and '{', ']' and '}' differ in one bit. */
		const __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
		const __m128i brackets = _mm_or_si128(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{')),
			_mm_cmpeq_epi8(folded, _mm_set1_epi8('}')));
		const __m128i quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
		unsigned found = (unsigned)_mm_movemask_epi8(_mm_or_si128(brackets, quotes));

		if (found)
			return at + __builtin_ctz(found);
	}
#endif
	while (at < end && *at != '"' && (*at | 0x20) != '{' && (*at | 0x20) != '}')
		at++;
	return at;
}

/* May this quote end a string, by what follows it? */
static bool may_end_string(const struct json_reader *reader, const char *quote)
{
	const char *next = quote + 1;
	bool beside = next < reader->end && !is_space(*next);

	next = skip_space(next, reader->end);
	if (next == reader->end)
		return true;
	/* A string may follow where a comma is missing, but hardly without a space. */
	return *next == ',' || *next == ':' || *next == '}' || *next == ']' ||
	       (*next == '"' && !beside);
}

/* The reader is behind the opening quote. */
static inline enum json_status rest_of_string(
	struct json_reader *reader, struct json_text *ret_text)
{
	const char *begin = reader->at, *at = begin;
	bool escaped = false;

	for (;;) {
		at = find_quote(at, reader->end);
		if (at == reader->end)
			return JSON_MORE;
		if (*at == '\\') {
			escaped = true;
			if (reader->end - at < 2)
				return JSON_MORE;
			at += 2;
			continue;
		}
		if (!reader->lenient || may_end_string(reader, at))
			break;
		reader->mended++;
		at++;
	}
	ret_text->bytes = begin;
	ret_text->length = (size_t)(at - begin);
	ret_text->escaped = escaped;
	reader->at = at + 1;
	return JSON_OK;
}

enum json_status json_reader_enter(struct json_reader *reader, char bracket)
{
	const char *at = skip_space(reader->at, reader->end);

	if (at == reader->end)
		return JSON_MORE;
	if (*at != bracket)
		return JSON_BAD;
	reader->at = at + 1;
	reader->fresh = true;
	return JSON_OK;
}

/* Over the comma to what follows it; JSON_DONE behind the closing bracket. */
static inline enum json_status next_part(struct json_reader *reader, char closing)
{
	const char *at = skip_space(reader->at, reader->end);
	unsigned commas = 0;

	for (; at < reader->end && *at == ','; at = skip_space(at + 1, reader->end))
		commas++;
	if (at == reader->end)
		return JSON_MORE;
	if (*at == closing) {
		reader->mended += commas;
		reader->fresh = false;
		reader->at = at + 1;
		return JSON_DONE;
	}
	if (commas != !reader->fresh)
		reader->mended += commas ? commas - !reader->fresh : 1;
	reader->fresh = false;
	reader->at = at;
	return JSON_OK;
}

enum json_status json_reader_member(struct json_reader *reader, struct json_text *ret_key)
{
	enum json_status status = next_part(reader, '}');
	const char *at;

	if (status != JSON_OK)
		return status;
	if (*reader->at != '"')
		return JSON_BAD;
	reader->at++;
	status = rest_of_string(reader, ret_key);
	if (status != JSON_OK)
		return status;
	at = skip_space(reader->at, reader->end);
	if (at == reader->end)
		return JSON_MORE;
	if (*at != ':')
		return JSON_BAD;
	at = skip_space(at + 1, reader->end);
	reader->at = at;
	return at == reader->end ? JSON_MORE : JSON_OK;
}

enum json_status json_reader_item(struct json_reader *reader)
{
	return next_part(reader, ']');
}

char json_reader_peek(struct json_reader *reader)
{
	reader->at = skip_space(reader->at, reader->end);
	return reader->at == reader->end ? '\0' : *reader->at;
}

enum json_status json_reader_string(struct json_reader *reader, struct json_text *ret_text)
{
	char first = json_reader_peek(reader);

	if (first != '"')
		return reader->at == reader->end ? JSON_MORE : JSON_BAD;
	reader->at++;
	return rest_of_string(reader, ret_text);
}

/* What a number or a word is made of; what is neither ends them. */
static inline bool is_of_scalar(char character)
{
	return (character >= '0' && character <= '9') || character == '.' || character == '-' ||
	       character == '+' || ((character | 0x20) >= 'a' && (character | 0x20) <= 'z');
}

static inline enum json_status scalar(struct json_reader *reader, struct json_text *ret_text)
{
	const char *begin = reader->at, *at = begin;

	while (at < reader->end && is_of_scalar(*at))
		at++;
	if (at == reader->end && !reader->is_last)
		return JSON_MORE;
	if (at == begin)
		return JSON_BAD;
	*ret_text = (struct json_text){.bytes = begin, .length = (size_t)(at - begin)};
	reader->at = at;
	return JSON_OK;
}

/* An object or an array: to the bracket that closes as many as were opened. */
static enum json_status container(struct json_reader *reader, struct json_text *ret_text)
{
	const char *begin = reader->at;
	bool escaped = false;
	size_t depth = 0;

	do {
		struct json_text text;
		const char *at = find_structure(reader->at, reader->end);

		if (at == reader->end)
			return JSON_MORE;
		reader->at = at + 1;
		if (*at == '"') {
			if (rest_of_string(reader, &text) != JSON_OK)
				return JSON_MORE;
			escaped |= text.escaped;
		} else if ((*at | 0x20) == '{') {
			depth++;
		} else {
			depth--;
		}
	} while (depth);
	reader->fresh = false;
	*ret_text = (struct json_text){
		.bytes = begin, .length = (size_t)(reader->at - begin), .escaped = escaped};
	return JSON_OK;
}

enum json_status json_reader_value(struct json_reader *reader, struct json_text *ret_text)
{
	char first = json_reader_peek(reader);
	enum json_status status;

	if (reader->at == reader->end)
		return JSON_MORE;
	if (first == '{' || first == '[')
		return container(reader, ret_text);
	if (first != '"')
		return scalar(reader, ret_text);
	reader->at++;
	status = rest_of_string(reader, ret_text);
	if (status == JSON_OK) {
		ret_text->bytes--;
		ret_text->length += 2;
	}
	return status;
}
