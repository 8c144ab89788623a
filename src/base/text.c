/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 80
#define WIDTH_MIN     40
#define WIDTH_MAX     100

struct range {
	uint32_t first, last;
};

/* Unicode's East Asian Width W and F, in blocks: where a block has others, they are rare. */
static const struct range wide[] = {
	{0x1100, 0x115f},
	{0x2e80, 0x303e},
	{0x3041, 0xa4cf},
	{0xa960, 0xa97f},
	{0xac00, 0xd7a3},
	{0xf900, 0xfaff},
	{0xfe30, 0xfe6f},
	{0xff01, 0xff60},
	{0xffe0, 0xffe6},
	{0x1f300, 0x1f64f},
	{0x1f680, 0x1f6ff},
	{0x1f900, 0x1faff},
	{0x20000, 0x3fffd},
};

/* Marks that combine, joiners and selectors of variants. */
static const struct range no_columns[] = {
	{0x300, 0x36f},
	{0x200b, 0x200d},
	{0x20d0, 0x20ff},
	{0xfe00, 0xfe0f},
	{0xfe20, 0xfe2f},
};

static bool is_among(uint32_t code, const struct range *ranges, size_t count)
{
	for (size_t i = 0; i < count && code >= ranges[i].first; i++) {
		if (code <= ranges[i].last)
			return true;
	}
	return false;
}

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t text_character(const char *text, size_t *ret_columns)
{
	unsigned char first = (unsigned char)*text;
	uint32_t code = first < 0xe0 ? first & 0x1f : first < 0xf0 ? first & 0x0f : first & 0x07;
	size_t length = 1;

	*ret_columns = 1;
	if (first < 0x80)
		return 1;
	for (; length < 4 && is_continuation(text[length]); length++)
		code = code << 6 | (text[length] & 0x3f);
	if (is_among(code, no_columns, ARRAY_SIZE(no_columns)))
		*ret_columns = 0;
	else if (is_among(code, wide, ARRAY_SIZE(wide)))
		*ret_columns = 2;
	return length;
}

size_t text_columns(const char *text, size_t length)
{
	size_t columns = 0;

	for (size_t index = 0, more; index < length && text[index]; columns += more)
		index += text_character(text + index, &more);
	return columns;
}

size_t text_terminal_width(FILE *file)
{
	struct winsize size;

	if (!isatty(fileno(file)) || ioctl(fileno(file), TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH_DEFAULT;
	return MAX((size_t)WIDTH_MIN, MIN((size_t)size.ws_col, (size_t)WIDTH_MAX));
}

void text_pad(struct strbuf *out, size_t count)
{
	strbuf_addf(out, "%*s", (int)count, "");
}

/* Words up to `end`; see text_wrap(). */
static void wrap_span(struct strbuf *out, const char *text, const char *end, size_t column,
	size_t indent, size_t width)
{
	bool at_start = true;

	for (;;) {
		size_t length, columns;

		while (text < end && strchr(" \t\n", *text))
			text++;
		if (text == end)
			break;
		length = MIN(strcspn(text, " \t\n"), (size_t)(end - text));
		columns = text_columns(text, length);
		if (!at_start && column + 1 + columns > width) {
			strbuf_add_char(out, '\n');
			text_pad(out, indent);
			column = indent;
			at_start = true;
		}
		if (!at_start) {
			strbuf_add_char(out, ' ');
			column++;
		}
		strbuf_add_bytes(out, text, length);
		column += columns;
		text += length;
		at_start = false;
	}
	strbuf_add_char(out, '\n');
}

void text_wrap(struct strbuf *out, const char *text, size_t column, size_t indent, size_t width)
{
	wrap_span(out, text, text + strlen(text), column, indent, width);
}

static bool is_preformatted(const char *line)
{
	return *line == ' ' || *line == '\t';
}

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return *line ? line + 1 : line;
}

void text_paragraphs(struct strbuf *out, const char *text, size_t indent, size_t width)
{
	while (*text) {
		const char *end;

		if (*text == '\n') {
			strbuf_add_char(out, '\n');
			text++;
			continue;
		}
		end = next_line(text);
		text_pad(out, indent);
		if (is_preformatted(text)) {
			strbuf_add_bytes(out, text, strcspn(text, "\n"));
			strbuf_add_char(out, '\n');
		} else {
			while (*end && *end != '\n' && !is_preformatted(end))
				end = next_line(end);
			wrap_span(out, text, end, indent, indent, width);
		}
		text = end;
	}
}
