/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To the next byte of some kind, 16 at a time where the processor can: the loops in which reading
 * JSON spends its time. Each returns `end` when there is none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* White space, and control characters, which are passed over where they are damage. */
static inline bool json_is_space(char character)
{
	return (unsigned char)character <= ' ';
}

/* Ends a number or a word. */
static inline bool json_ends_scalar(char character)
{
	return json_is_space(character) || character == ',' || character == ':' ||
	       character == '"' || (character | 0x20) == '{' || (character | 0x20) == '}';
}

#ifdef __SSE2__

static inline __m128i json_load(const char *at)
{
	return _mm_loadu_si128((const void *)at);
}

static inline __m128i json_equal(__m128i bytes, char character)
{
	return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(character));
}

static inline unsigned json_mask(__m128i found)
{
	return (unsigned)_mm_movemask_epi8(found);
}

static inline __m128i json_spaces(__m128i bytes)
{
	return _mm_cmpeq_epi8(_mm_subs_epu8(bytes, _mm_set1_epi8(' ')), _mm_setzero_si128());
}

/* '[' and '{', ']' and '}' differ in one bit. */
static inline __m128i json_brackets(__m128i bytes)
{
	const __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));

	return _mm_or_si128(json_equal(folded, '{'), json_equal(folded, '}'));
}

/* Bits of the 16 bytes at `at` that are of the kind. */
static inline unsigned json_mask_token(const char *at)
{
	return ~json_mask(json_spaces(json_load(at))) & 0xffff;
}

static inline unsigned json_mask_quote(const char *at)
{
	const __m128i bytes = json_load(at);

	return json_mask(_mm_or_si128(json_equal(bytes, '"'), json_equal(bytes, '\\')));
}

static inline unsigned json_mask_structure(const char *at)
{
	const __m128i bytes = json_load(at);

	return json_mask(_mm_or_si128(json_equal(bytes, '"'), json_brackets(bytes)));
}

static inline unsigned json_mask_scalar_end(const char *at)
{
	const __m128i bytes = json_load(at);
	const __m128i spaces = _mm_or_si128(json_spaces(bytes), json_brackets(bytes));
	const __m128i marks = _mm_or_si128(json_equal(bytes, ','), json_equal(bytes, ':'));

	return json_mask(_mm_or_si128(_mm_or_si128(spaces, marks), json_equal(bytes, '"')));
}

#define JSON_FIND_16(at, end, mask_of)                                                             \
	for (; (end) - (at) >= 16; (at) += 16) {                                                   \
		unsigned _found = mask_of(at);                                                     \
		if (_found)                                                                        \
			return (at) + __builtin_ctz(_found);                                       \
	}

#else
#define JSON_FIND_16(at, end, mask_of)
#endif

/* What is not white space. Mostly there is none, or a single one. */
static inline const char *json_find_token(const char *at, const char *end)
{
	if (at < end && !json_is_space(*at))
		return at;
	if (end - at > 1 && !json_is_space(at[1]))
		return at + 1;
	JSON_FIND_16(at, end, json_mask_token)
	while (at < end && json_is_space(*at))
		at++;
	return at;
}

/* A quote or a backslash. */
static inline const char *json_find_quote(const char *at, const char *end)
{
	JSON_FIND_16(at, end, json_mask_quote)
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
}

/* A quote or a bracket. */
static inline const char *json_find_structure(const char *at, const char *end)
{
	JSON_FIND_16(at, end, json_mask_structure)
	while (at < end && *at != '"' && (*at | 0x20) != '{' && (*at | 0x20) != '}')
		at++;
	return at;
}

static inline const char *json_find_scalar_end(const char *at, const char *end)
{
	JSON_FIND_16(at, end, json_mask_scalar_end)
	while (at < end && !json_ends_scalar(*at))
		at++;
	return at;
}
