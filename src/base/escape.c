/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"

#define REPLACEMENT "\xef\xbf\xbd"

static uint32_t decode(const char *bytes, size_t length)
{
	const unsigned char *cursor = (const unsigned char *)bytes;
	uint32_t code = length == 1 ? cursor[0] : cursor[0] & (0x7fu >> length);

	for (size_t i = 1; i < length; i++)
		code = code << 6 | (cursor[i] & 0x3f);
	return code;
}

/* Controls, line separators, marks that turn the direction of text, and what XML cannot hold. */
static bool is_unsafe(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
	       (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff || code == 0xfffe ||
	       code == 0xffff;
}

typedef void add_function(struct strbuf *out, const char *bytes, size_t length);

/* Most names are letters and digits, which mean themselves everywhere: they are copied in runs. */
static size_t plain_run(const char *text, size_t length)
{
	size_t run = 0;

	while (run < length && (isalnum((unsigned char)text[run]) || text[run] == '_'))
		run++;
	return run;
}

static void escape_each(struct strbuf *out, const char *text, size_t length, add_function *add)
{
	for (size_t i = 0; i < length;) {
		size_t run = plain_run(text + i, length - i), sequence;
		uint32_t code;

		strbuf_add_bytes(out, text + i, run);
		i += run;
		if (i == length)
			break;
		sequence = utf8_sequence_length(text + i, length - i);
		if (!sequence) {
			strbuf_add(out, REPLACEMENT);
			i++;
			continue;
		}
		code = decode(text + i, sequence);
		if (is_unsafe(code))
			strbuf_addf(out, code < 0x80 ? "\\x%02x" : "\\u%04x", code);
		else
			add(out, text + i, sequence);
		i += sequence;
	}
}

static void add_plain(struct strbuf *out, const char *bytes, size_t length)
{
	strbuf_add_bytes(out, bytes, length);
}

static void add_xml(struct strbuf *out, const char *bytes, size_t length)
{
	switch (*bytes) {
	case '&':
		strbuf_add(out, "&amp;");
		break;
	case '<':
		strbuf_add(out, "&lt;");
		break;
	case '>':
		strbuf_add(out, "&gt;");
		break;
	case '"':
		strbuf_add(out, "&quot;");
		break;
	case '\'':
		strbuf_add(out, "&#39;");
		break;
	default:
		strbuf_add_bytes(out, bytes, length);
	}
}

static void add_folded(struct strbuf *out, const char *bytes, size_t length)
{
	if (*bytes == ';')
		strbuf_add(out, "\\x3b");
	else
		strbuf_add_bytes(out, bytes, length);
}

void escape_plain_n(struct strbuf *out, const char *text, size_t length)
{
	escape_each(out, text, length, add_plain);
}

void escape_plain(struct strbuf *out, const char *text)
{
	escape_each(out, text, strlen(text), add_plain);
}

void escape_glob(struct strbuf *out, const char *path)
{
	for (; *path; path++) {
		if (strchr("*?[\\", *path))
			strbuf_add_char(out, '\\');
		strbuf_add_char(out, *path);
	}
}

void escape_xml(struct strbuf *out, const char *text)
{
	escape_each(out, text, strlen(text), add_xml);
}

void escape_folded(struct strbuf *out, const char *text)
{
	escape_each(out, text, strlen(text), add_folded);
}

void escape_lines(struct strbuf *out, const char *text)
{
	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		escape_plain_n(out, text, (size_t)(end - text));
		strbuf_add_char(out, '\n');
	}
	escape_plain(out, text);
}

static void add_quoted(struct strbuf *out, const char *bytes, size_t length)
{
	if (*bytes == '\'')
		strbuf_add(out, "'\\''");
	else
		strbuf_add_bytes(out, bytes, length);
}

void escape_shell(struct strbuf *out, const char *name)
{
	bool is_plain = *name && *name != '~' && !strpbrk(name, " \t\n\"'\\$`*?[]{}()<>|&;#!");

	if (*name == '-')
		strbuf_add(out, "./"); /* no option */
	if (is_plain) {
		escape_plain(out, name);
		return;
	}
	strbuf_add_char(out, '\'');
	escape_each(out, name, strlen(name), add_quoted);
	strbuf_add_char(out, '\'');
}

static void add_csv(struct strbuf *out, const char *bytes, size_t length)
{
	strbuf_add_bytes(out, bytes, length);
	if (*bytes == '"')
		strbuf_add_char(out, '"');
}

void escape_csv(struct strbuf *out, const char *text)
{
	size_t length = strlen(text);
	bool quoted =
		strpbrk(text, ",\"") != NULL || *text == ' ' || (length && text[length - 1] == ' ');

	if (quoted)
		strbuf_add_char(out, '"');
	if (*text && strchr("=+-@", *text))
		strbuf_add_char(out, '\'');
	escape_each(out, text, length, add_csv);
	if (quoted)
		strbuf_add_char(out, '"');
}
