/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To the next byte of some kind, 16 at a time where the processor can: the loops in which reading
 * JSON spends its time. Each returns `end` when there is none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#define JSON_DIGITS_ROOM 32 /* bytes that must be readable where a number is */

/*
 * The number of the first digits, up to eight, at `at`; returns how many there are. All eight bytes
 * are converted at once, the first being in the lowest byte.
 */
static inline unsigned json_digits_8(const char *at, uint64_t *ret_number)
{
	uint64_t digits, others;
	unsigned count;

	memcpy(&digits, at, sizeof(digits));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	digits = __builtin_bswap64(digits);
#endif
	digits ^= 0x3030303030303030;
	/* What is beyond 9 gets the highest bit; a carry reaches only what is behind it. */
	others = ((digits + 0x7676767676767676) | digits) & 0x8080808080808080;
	count = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
	digits = count ? digits << (8 - count) * 8 : 0;
	/* Pairs, fours, all. */
	digits = (digits * 10 + (digits >> 8)) & 0x00ff00ff00ff00ff;
	digits = (digits * 100 + (digits >> 16)) & 0x0000ffff0000ffff;
	*ret_number = (digits * 10000 + (digits >> 32)) & 0x00000000ffffffff;
	return count;
}

/* The same of up to 19 digits, which fit; 0 when there are none, or more. */
static inline unsigned json_digits(const char *at, uint64_t *ret_number)
{
	static const uint32_t powers[] = {
		1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
	uint64_t number, part;
	unsigned count = json_digits_8(at, &number), more;

	if (count < 8) {
		*ret_number = number;
		return count;
	}
	more = json_digits_8(at + 8, &part);
	if (more) {
		number = number * powers[more] + part;
		count += more;
	}
	if (more == 8) {
		more = json_digits_8(at + 16, &part);
		if (more > 3)
			return 0;
		if (more)
			number = number * powers[more] + part;
		count += more;
	}
	*ret_number = number;
	return count;
}
