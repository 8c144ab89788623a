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
	const char *at = text->bytes, *end;
	struct decimal number = {0};
	bool any = false, point = false;
	int64_t exponent = 0;

	if (!text->length) /* its bytes may be NULL */
		return -EINVAL;
	end = at + text->length;
	if (*at == '-') {
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
		if (number.digits >= UINT64_MAX / 10)
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

int json_text_magnitude(
	const struct json_text *text, unsigned decimals, bool *ret_negative, uint64_t *ret_value)
{
	struct decimal number;
	unsigned last = 0;

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
