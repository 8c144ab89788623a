/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/python_text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define REPLACEMENT 0xfffd

static void add_code_point(struct strbuf *out, uint32_t code)
{
	if (code < 0x80) {
		strbuf_add_char(out, (char)code);
		return;
	}
	if (code < 0x800) {
		strbuf_add_char(out, (char)(0xc0 | code >> 6));
	} else {
		if (code < 0x10000) {
			strbuf_add_char(out, (char)(0xe0 | code >> 12));
		} else {
			strbuf_add_char(out, (char)(0xf0 | code >> 18));
			strbuf_add_char(out, (char)(0x80 | (code >> 12 & 0x3f)));
		}
		strbuf_add_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
	}
	strbuf_add_char(out, (char)(0x80 | (code & 0x3f)));
}

/* Four hexadecimal digits; -1 when they are not there. */
static int32_t hex4(const char *at, const char *end)
{
	static const char digits[] = "0123456789abcdef";
	int32_t value = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		const char *digit = at[i] ? strchr(digits, at[i] | 0x20) : NULL;

		if (!digit)
			return -1;
		value = value << 4 | (int32_t)(digit - digits);
	}
	return value;
}

/* At 'u': a \u escape, with the second half of a pair where there is one. */
static uint32_t unicode_escape(const char **at, const char *end)
{
	int32_t high = hex4(*at + 1, end), low;

	if (high < 0) {
		(*at)++;
		return REPLACEMENT;
	}
	*at += 5;
	if (high < 0xd800 || high > 0xdbff || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
		return (uint32_t)high;
	low = hex4(*at + 2, end);
	if (low < 0xdc00 || low > 0xdfff)
		return (uint32_t)high;
	*at += 6;
	return 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
}

static uint32_t escape(const char **at, const char *end)
{
	static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
	const char *letter;

	if (**at == 'u')
		return unicode_escape(at, end);
	letter = **at ? strchr(letters, **at) : NULL;
	(*at)++;
	return (unsigned char)(letter ? meant[letter - letters] : (*at)[-1]);
}

/*
 * The character at `*at`, which moves on. Not as json_text_unescape() has it: Python keeps halves
 * of surrogate pairs, and shows them.
 */
static uint32_t next_character(const char **at, const char *end)
{
	size_t length = utf8_sequence_length(*at, (size_t)(end - *at));
	uint32_t code;

	if (**at == '\\' && *at + 1 < end) {
		(*at)++;
		return escape(at, end);
	}
	code = (unsigned char)*(*at)++;
	if (length == 0)
		return REPLACEMENT;
	if (length == 1)
		return code;
	code &= 0x7fU >> length;
	for (size_t i = 1; i < length; i++)
		code = code << 6 | ((unsigned char)*(*at)++ & 0x3f);
	return code;
}

/*
 * Characters that Python escapes: control and format characters, separators but for the space,
 * surrogates and private use. Those that no version of Unicode has named yet are left as they are:
 * which ones Python escapes is up to its version.
 */
static bool is_printable(uint32_t code)
{
	static const uint32_t ranges[][2] = {{0x00, 0x1f}, {0x7f, 0xa0}, {0xad, 0xad},
		{0x600, 0x605}, {0x61c, 0x61c}, {0x6dd, 0x6dd}, {0x70f, 0x70f}, {0x890, 0x891},
		{0x8e2, 0x8e2}, {0x1680, 0x1680}, {0x180e, 0x180e}, {0x2000, 0x200f},
		{0x2028, 0x202f}, {0x205f, 0x206f}, {0x3000, 0x3000}, {0xd800, 0xf8ff},
		{0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0x110bd, 0x110bd},
		{0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
		{0xe0000, 0xe0fff}, {0xf0000, UINT32_MAX}};

	if (code >= 0x20 && code < 0x7f)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		if (code >= ranges[i][0] && code <= ranges[i][1])
			return false;
	}
	return true;
}

static void add_character(struct strbuf *out, uint32_t code, char quote)
{
	if (code == '\\' || code == (unsigned char)quote)
		strbuf_add_char(out, '\\');
	if (is_printable(code))
		add_code_point(out, code);
	else if (code == '\n' || code == '\r' || code == '\t')
		strbuf_addf(out, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
	else if (code < 0x100)
		strbuf_addf(out, "\\x%02x", code);
	else
		strbuf_addf(out, code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
}

/* `at` is behind the opening quote, `end` at the closing one or at the end of the text. */
static void add_string(struct strbuf *out, const char *at, const char *end)
{
	bool has_single = false, has_double = false;
	char quote;

	for (const char *look = at; look < end;) {
		uint32_t code = next_character(&look, end);

		has_single = has_single || code == '\'';
		has_double = has_double || code == '"';
	}
	quote = has_single && !has_double ? '"' : '\'';
	strbuf_add_char(out, quote);
	while (at < end)
		add_character(out, next_character(&at, end), quote);
	strbuf_add_char(out, quote);
}

/*
 * The number with so many digits: the nearest, or one beside it, which may be the one that means
 * the number where floats lie closer on one side. Fills text and returns true when it does.
 */
static bool means_with(double number, int digits, char *text, size_t size)
{
	char mantissa[24], *end;
	unsigned long long whole = 0;
	int exponent;

	snprintf(text, size, "%.*e", digits - 1, number);
	if (strtod(text, NULL) == number)
		return true;
	for (end = text; *end != 'e'; end++)
		whole = *end == '.' ? whole : whole * 10 + (unsigned)(*end - '0');
	exponent = (int)strtol(end + 1, NULL, 10);
	for (int step = -1; step <= 1; step += 2) {
		snprintf(mantissa, sizeof(mantissa), "%llu", whole + (unsigned long long)step);
		if ((int)strlen(mantissa) != digits)
			continue;
		snprintf(text, size, "%c.%se%+03d", mantissa[0], mantissa + 1, exponent);
		if (strtod(text, NULL) == number)
			return true;
	}
	return false;
}

/*
 * The fewest digits that mean this number, the first before the point. Any 15 digits are distinct
 * apart, but near zero, where there are fewer; 17 always suffice.
 */
static void shortest_digits(double number, char *digits, size_t size, int *ret_exponent)
{
	int count = number < DBL_MIN ? 1 : 15;
	char text[40], *exponent, *end;

	while (count < 17 && !means_with(number, count, text, sizeof(text)))
		count++;
	if (count == 17)
		snprintf(text, sizeof(text), "%.16e", number);
	exponent = strchr(text, 'e');
	*ret_exponent = (int)strtol(exponent + 1, NULL, 10);
	for (end = exponent; end[-1] == '0' && end - text > 1; end--)
		;
	*end = '\0';
	snprintf(digits, size, "%c%s", text[0], text[1] == '.' ? text + 2 : "");
}

/* repr() of a float: an exponent below 1e-4 and from 1e16 on. */
void python_text_add_float(struct strbuf *out, double number)
{
	char digits[40];
	int exponent, count;

	if (isnan(number) || isinf(number)) {
		strbuf_add(out, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
		return;
	}
	if (signbit(number))
		strbuf_add_char(out, '-');
	shortest_digits(fabs(number), digits, sizeof(digits), &exponent);
	count = (int)strlen(digits);
	if (exponent < -4 || exponent >= 16) {
		strbuf_addf(out, "%c%s%se%c%02d", digits[0], count > 1 ? "." : "", digits + 1,
			exponent < 0 ? '-' : '+', abs(exponent));
	} else if (exponent < 0) {
		strbuf_addf(out, "0.%.*s%s", -exponent - 1, "0000", digits);
	} else if (count <= exponent + 1) {
		strbuf_add(out, digits);
		for (int i = count; i < exponent + 1; i++)
			strbuf_add_char(out, '0');
		strbuf_add(out, ".0");
	} else {
		strbuf_addf(out, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
	}
}

static void add_number(struct strbuf *out, const char *at, size_t length)
{
	char text[64];
	char *end;
	double number;

	if (!memchr(at, '.', length) && !memchr(at, 'e', length) && !memchr(at, 'E', length)) {
		bool is_minus_zero = length == 2 && memcmp(at, "-0", 2) == 0;

		strbuf_add_bytes(out, is_minus_zero ? "0" : at, is_minus_zero ? 1 : length);
		return;
	}
	snprintf(text, sizeof(text), "%.*s", (int)MIN(length, sizeof(text)), at);
	number = strtod(text, &end);
	if (length < sizeof(text) && *end == '\0')
		python_text_add_float(out, number);
	else
		strbuf_add_bytes(out, at, length);
}

static void add_word(struct strbuf *out, const char *at, size_t length)
{
	static const struct {
		const char *json, *python;
	} words[] = {{"true", "True"}, {"false", "False"}, {"null", "None"}, {"NaN", "nan"},
		{"Infinity", "inf"}, {"-Infinity", "-inf"}};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (length == strlen(words[i].json) && memcmp(at, words[i].json, length) == 0) {
			strbuf_add(out, words[i].python);
			return;
		}
	}
	if (*at == '-' || (*at >= '0' && *at <= '9')) {
		add_number(out, at, length);
		return;
	}
	while (length > 0) {
		const char *next = at;

		add_code_point(out, next_character(&next, at + length));
		length -= (size_t)(next - at);
		at = next;
	}
}

/* What a byte of a list is: those that a plain string may have come last. */
enum { SPECIAL, CONTROL_SPACE, QUOTE, LETTER, SPACE, SEPARATOR, BRACKET, DIGIT };

static const uint8_t classes[256] = {
	['!'] = LETTER,
	['#' ... '&'] = LETTER,
	['(' ... '+'] = LETTER,
	['-' ... '/'] = LETTER,
	[';' ... 'Z'] = LETTER,
	['^' ... 'z'] = LETTER,
	['|'] = LETTER,
	['~'] = LETTER,
	['\n'] = CONTROL_SPACE,
	['\t'] = CONTROL_SPACE,
	['\r'] = CONTROL_SPACE,
	['"'] = QUOTE,
	[' '] = SPACE,
	[','] = SEPARATOR,
	[':'] = SEPARATOR,
	['['] = BRACKET,
	[']'] = BRACKET,
	['{'] = BRACKET,
	['}'] = BRACKET,
	['0' ... '9'] = DIGIT,
};

static uint8_t class_of(char character)
{
	return classes[(unsigned char)character];
}

static bool is_end_of_word(char character)
{
	uint8_t class = class_of(character);

	return class != SPECIAL && class != LETTER && class != DIGIT;
}

/* A string that needs more than other quotes, or a word that is no small number. */
static const char *add_special(struct strbuf *out, const char *at, const char *end)
{
	const char *close = at + 1;

	if (*at != '"') {
		while (close < end && !is_end_of_word(*close))
			close++;
		add_word(out, at, (size_t)(close - at));
		return close;
	}
	while (close < end && *close != '"')
		close += *close == '\\' && close + 1 < end ? 2 : 1;
	add_string(out, at + 1, close);
	return close < end ? close + 1 : end;
}

/* Copies a string of letters that need no escape; NULL: it is not one. */
static const char *copy_string(const char *at, const char *end, char **to)
{
	char *out = *to;

	*out++ = '\'';
	for (at++; at < end && class_of(*at) >= LETTER; at++)
		*out++ = *at;
	if (at == end || *at != '"')
		return NULL;
	*out++ = '\'';
	*to = out;
	return at + 1;
}

/* Copies a whole number; NULL: it is not one. */
static const char *copy_digits(const char *at, const char *end, char **to)
{
	char *out = *to;

	while (at < end && class_of(*at) == DIGIT)
		*out++ = *at++;
	if (at < end && !is_end_of_word(*at))
		return NULL;
	*to = out;
	return at;
}

/*
 * What makes up nearly all of a list: brackets, commas, whole numbers and plain strings, of which
 * each byte becomes at most two. Returns where something else begins, or the end.
 */
static const char *copy_plain(const char *at, const char *end, char **to)
{
	while (at < end) {
		const char *next = at + 1;
		char *out = *to;

		switch (class_of(*at)) {
		case SPACE:
		case CONTROL_SPACE:
			break;
		case SEPARATOR:
			out[0] = *at;
			out[1] = ' ';
			*to += 2;
			break;
		case BRACKET:
			*out = *at;
			*to += 1;
			break;
		case DIGIT:
			next = copy_digits(at, end, to);
			break;
		case QUOTE:
			next = copy_string(at, end, to);
			break;
		default:
			next = NULL;
		}
		if (!next)
			return at;
		at = next;
	}
	return at;
}

void python_text_add(struct strbuf *out, struct execution_text json)
{
	const char *at = json.bytes, *end = at + json.length;

	if (json.length == 0)
		strbuf_add(out, "[]");
	while (at < end) {
		char *room = strbuf_room(out, 2 * (size_t)(end - at) + 2), *to = room;

		if (!room)
			return;
		at = copy_plain(at, end, &to);
		strbuf_take(out, (size_t)(to - room));
		if (at < end)
			at = add_special(out, at, end);
	}
}
