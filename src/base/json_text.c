/* SPDX-License-Identifier: Apache-2.0 */
/* What the pieces that json_reader.h gives mean: strings with escapes, and numbers. */
#include "base/json_reader.h"

#include <errno.h>

static int hex_digit(char character)
{
	if (character >= '0' && character <= '9')
		return character - '0';
	character |= 0x20;
	return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

/* The four digits of \uXXXX, or -1. */
static int32_t hex_code(const char *at, const char *end)
{
	int32_t code = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(at[i]);

		if (digit < 0)
			return -1;
		code = code << 4 | digit;
	}
	return code;
}

static void add_utf8(struct strbuf *out, int32_t code)
{
	char bytes[4];
	size_t length = 0;

	if (code < 0x80) {
		bytes[length++] = (char)code;
	} else if (code < 0x800) {
		bytes[length++] = (char)(0xc0 | code >> 6);
		bytes[length++] = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		bytes[length++] = (char)(0xe0 | code >> 12);
		bytes[length++] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[length++] = (char)(0x80 | (code & 0x3f));
	} else {
		bytes[length++] = (char)(0xf0 | code >> 18);
		bytes[length++] = (char)(0x80 | (code >> 12 & 0x3f));
		bytes[length++] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[length++] = (char)(0x80 | (code & 0x3f));
	}
	strbuf_add_bytes(out, bytes, length);
}

/* `at` is behind "\u". Returns where the text goes on, NULL when these are no digits. */
static const char *unescape_code(struct strbuf *out, const char *at, const char *end)
{
	int32_t code = hex_code(at, end), second;

	if (code < 0)
		return NULL;
	at += 4;
	if (code >= 0xd800 && code < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
		second = hex_code(at + 2, end);
		if (second >= 0xdc00 && second < 0xe000) {
			add_utf8(out, 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00));
			return at + 6;
		}
	}
	add_utf8(out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
	return at;
}

void json_text_unescape(struct strbuf *out, const struct json_text *text)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = text->bytes, *end = at + text->length;

	while (at < end) {
		const char *slash = memchr(at, '\\', (size_t)(end - at)), *known, *next;

		if (!slash || end - slash < 2) {
			strbuf_add_bytes(out, at, (size_t)(end - at));
			return;
		}
		strbuf_add_bytes(out, at, (size_t)(slash - at));
		known = memchr(from, slash[1], sizeof(from) - 1);
		next = slash[1] == 'u' ? unescape_code(out, slash + 2, end) : NULL;
		if (known)
			strbuf_add_char(out, to[known - from]);
		else if (!next)
			strbuf_add_bytes(out, slash, 2);
		at = next ? next : slash + 2;
	}
}

/* A number as digits × 10^exponent. */
struct decimal {
	uint64_t digits;
	int64_t exponent;
	bool negative;
	bool cut; /* more digits than fit: 10 × `digits` and the next one are beyond 64 bits */
};

/* Reads "e+12" at *at; false when there are no digits. Far out of range is as good as any. */
static bool read_exponent(const char **at, const char *end, int64_t *ret_exponent)
{
	const char *cursor = *at + 1;
	bool negative = cursor < end && *cursor == '-';
	int64_t exponent = 0;

	if (cursor < end && (*cursor == '-' || *cursor == '+'))
		cursor++;
	if (cursor == end)
		return false;
	for (; cursor < end && *cursor >= '0' && *cursor <= '9'; cursor++) {
		if (exponent < 100000)
			exponent = exponent * 10 + (*cursor - '0');
	}
	*at = cursor;
	*ret_exponent = negative ? -exponent : exponent;
	return true;
}

static int read_decimal(const struct json_text *text, struct decimal *ret)
{
	const char *at = text->bytes, *end = at + text->length;
	struct decimal number = {0};
	bool any = false, point = false;
	int64_t exponent = 0;

	if (at < end && *at == '-') {
		number.negative = true;
		at++;
	}
	for (; at < end; at++) {
		unsigned digit = (unsigned)(*at - '0');

		if (*at == '.' && !point) {
			point = true;
			continue;
		}
		if (digit > 9)
			break;
		any = true;
		/* Digits that no longer fit move the point instead. */
		number.cut = number.cut || number.digits > (UINT64_MAX - digit) / 10;
		if (number.cut) {
			number.exponent += !point;
		} else {
			number.digits = number.digits * 10 + digit;
			number.exponent -= point;
		}
	}
	if (!any || (at < end && ((*at | 0x20) != 'e' || !read_exponent(&at, end, &exponent))) ||
		at != end)
		return -EINVAL;
	number.exponent += exponent;
	*ret = number;
	return 0;
}

/*
 * The number of eight characters, the first in the lowest byte; false when one is no digit. Bytes
 * are combined to pairs, fours and all.
 */
static inline bool eight_digits(uint64_t characters, uint64_t *ret_number)
{
	uint64_t digits = characters ^ 0x3030303030303030;

	/* Beyond 9 the sum has the highest bit. */
	if (((digits + 0x7676767676767676) | digits) & 0x8080808080808080)
		return false;
	digits = (digits * 10 + (digits >> 8)) & 0x00ff00ff00ff00ff;
	digits = (digits * 100 + (digits >> 16)) & 0x0000ffff0000ffff;
	*ret_number = (digits * 10000 + (digits >> 32)) & 0x00000000ffffffff;
	return true;
}

/* Four to eight characters as eight, with zeros before; from two loads that may overlap. */
static inline uint64_t load_characters(const char *at, size_t count)
{
	uint32_t first, last;
	unsigned shift = (unsigned)(8 - count) * 8;
	uint64_t characters;

	memcpy(&first, at, sizeof(first));
	memcpy(&last, at + count - sizeof(last), sizeof(last));
	characters = first | (uint64_t)last << (count - sizeof(last)) * 8;
	return shift ? characters << shift | 0x3030303030303030 >> (64 - shift) : characters;
}

/* `count` characters, at most 19, all of which must be digits. */
static inline bool read_digits(const char *at, size_t count, uint64_t *ret_number)
{
	static const uint32_t powers[] = {10000, 100000, 1000000, 10000000, 100000000};
	uint64_t number = 0, part;

	while (count >= 4) {
		size_t taken = MIN(count, (size_t)8);

		if (!eight_digits(load_characters(at, taken), &part))
			return false;
		number = number * powers[taken - 4] + part;
		at += taken;
		count -= taken;
	}
	for (; count; count--, at++) {
		unsigned digit = (unsigned)(*at - '0');

		if (digit > 9)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return true;
}

#define DIGITS_MAX 19 /* any so many fit into 64 bits */
#define DECIMALS   3  /* that nearly all numbers with decimals have */

/* Nearly all numbers: digits, and three decimals or none. False for others. */
static inline bool read_plain(
	const struct json_text *text, unsigned decimals, bool *ret_negative, uint64_t *ret_value)
{
	const char *at = text->bytes, *end = at + text->length;
	bool negative = text->length && *at == '-';
	uint64_t whole, fraction;

	at += negative;
	if (at == end)
		return false;
	if (decimals == DECIMALS && end - at > DECIMALS + 1 && end[-DECIMALS - 1] == '.') {
		end -= DECIMALS + 1;
		if (!read_digits(end + 1, DECIMALS, &fraction))
			return false;
	} else {
		fraction = 0;
	}
	if (end - at > DIGITS_MAX || !read_digits(at, (size_t)(end - at), &whole))
		return false;
	if (decimals && (decimals != DECIMALS || __builtin_mul_overflow(whole, 1000, &whole) ||
				__builtin_add_overflow(whole, fraction, &whole)))
		return false;
	*ret_negative = negative;
	*ret_value = whole;
	return true;
}

int json_text_magnitude(
	const struct json_text *text, unsigned decimals, bool *ret_negative, uint64_t *ret_value)
{
	struct decimal number;
	unsigned last = 0;

	if (read_plain(text, decimals, ret_negative, ret_value))
		return 0;
	if (read_decimal(text, &number) < 0)
		return -EINVAL;
	number.exponent += decimals;
	if (number.cut && number.exponent > 0)
		return -ERANGE;
	for (; number.exponent > 0 && number.digits; number.exponent--) {
		if (__builtin_mul_overflow(number.digits, (uint64_t)10, &number.digits))
			return -ERANGE;
	}
	for (; number.exponent < 0 && (number.digits || last); number.exponent++) {
		last = (unsigned)(number.digits % 10);
		number.digits /= 10;
	}
	number.digits += last >= 5;
	*ret_negative = number.negative;
	*ret_value = number.digits;
	return 0;
}

int json_text_u64(const struct json_text *text, uint64_t *ret_value)
{
	bool negative;
	uint64_t value;
	int result = json_text_magnitude(text, 0, &negative, &value);

	if (result == 0 && negative && value)
		result = -ERANGE;
	if (result == 0)
		*ret_value = value;
	return result;
}

int json_text_fixed(const struct json_text *text, unsigned decimals, int64_t *ret_value)
{
	bool negative;
	uint64_t value;
	int result = json_text_magnitude(text, decimals, &negative, &value);

	if (result < 0)
		return result;
	if (value > (uint64_t)INT64_MAX + negative)
		return -ERANGE;
	*ret_value = negative ? (int64_t)-value : (int64_t)value;
	return 0;
}

int json_text_i64(const struct json_text *text, int64_t *ret_value)
{
	return json_text_fixed(text, 0, ret_value);
}
