/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 80
#define WIDTH_MIN     40
#define WIDTH_MAX     100

size_t text_columns(const char *text, size_t length)
{
	size_t columns = 0;

	for (size_t index = 0; index < length; index++)
		columns += ((unsigned char)text[index] & 0xc0) != 0x80;
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
