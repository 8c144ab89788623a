/* SPDX-License-Identifier: Apache-2.0 */
#include "model/shorten.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/macros.h"
#include "base/text.h"
#include "capture/capture.h"

#define ELLIPSIS "\xe2\x80\xa6"

size_t shorten_columns(const char *text)
{
	return text_columns(text, strlen(text));
}

static bool is_word(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_' || byte == '$';
}

/* The length of an operator's name at `text`, whose brackets open nothing: operator<, operator()…
 * 0: none. */
static size_t operator_length(const char *name, const char *text)
{
	static const char *const symbols[] = {
		"<<=",
		">>=",
		"<=>",
		"->*",
		"<<",
		">>",
		"<=",
		">=",
		"->",
		"()",
		"<",
		">",
	};
	const size_t word = strlen("operator");

	if (strncmp(text, "operator", word) != 0 || (text > name && is_word(text[-1])))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		if (strncmp(text + word, symbols[i], strlen(symbols[i])) == 0)
			return word + strlen(symbols[i]);
	}
	return 0;
}

/* The bracket that closes the one at `text`, or NULL. Arrows are no brackets. */
static const char *closing(const char *text)
{
	char open = *text, close = open == '<' ? '>' : ')';
	int depth = 0;

	for (; *text; text++) {
		if (text[0] == '-' && text[1] == '>')
			text++;
		else if (*text == open)
			depth++;
		else if (*text == close && --depth == 0)
			return text;
	}
	return NULL;
}

/* Template arguments follow a name; "<lambda…>" and "<frozen module>" do not. */
static bool opens_template(const char *name, const char *text)
{
	return *text == '<' && text > name && is_word(text[-1]);
}

/*
 * A list of parameters follows a name, template arguments or an operator. "(anonymous namespace)"
 * does not, and an empty list is as short as it gets.
 */
static bool opens_parameters(const char *name, const char *text)
{
	return *text == '(' && text > name && text[1] != ')' &&
	       (is_word(text[-1]) || strchr("<>=)", text[-1]));
}

/* Copies the name with every such bracket's inside elided. */
static void elide(
	struct strbuf *out, const char *name, bool (*opens)(const char *name, const char *text))
{
	for (const char *text = name; *text;) {
		size_t symbol = operator_length(name, text);
		const char *end = !symbol && opens(name, text) ? closing(text) : NULL;

		if (end) {
			strbuf_add_char(out, *text);
			strbuf_add(out, ELLIPSIS);
			text = end;
		}
		strbuf_add_bytes(out, text, MAX(symbol, (size_t)1));
		text += MAX(symbol, (size_t)1);
	}
}

/* After the first "::" outside of brackets from `text` on, or NULL. */
static const char *after_scope(const char *text)
{
	for (; *text; text++) {
		if (*text == '<' || *text == '(') {
			const char *end = closing(text);

			if (!end)
				return NULL;
			text = end;
		} else if (text[0] == ':' && text[1] == ':') {
			return text + 2;
		}
	}
	return NULL;
}

/* The longest "…::tail" that fits, or NULL. */
static const char *fitting_tail(const char *name, size_t columns)
{
	const char *tail = after_scope(name);

	while (tail && shorten_columns(tail) + 3 > columns)
		tail = after_scope(tail);
	return tail;
}

/* After the characters that fit into so many columns. */
static const char *after_columns(const char *text, size_t columns)
{
	while (*text) {
		size_t more, length = text_character(text, &more);

		if (more > columns)
			break;
		columns -= more;
		text += length;
	}
	return text;
}

/* From the first character on behind so many columns: a wide one over their end is skipped, too. */
static const char *skip_columns(const char *text, size_t columns)
{
	while (*text && columns) {
		size_t more;

		text += text_character(text, &more);
		columns -= MIN(columns, more);
	}
	return text;
}

/* Keeps that many characters of the head and as many of the tail as fit beside them. */
static void cut_middle(struct strbuf *out, const char *name, size_t columns, size_t head)
{
	size_t all = shorten_columns(name), tail;

	if (!columns)
		return;
	head = columns < 5 ? columns - 1 : MIN(head, columns - 1);
	tail = columns - 1 - head;
	strbuf_add_bytes(out, name, (size_t)(after_columns(name, head) - name));
	strbuf_add(out, ELLIPSIS);
	strbuf_add(out, skip_columns(name, all - tail));
}

void shorten_text(struct strbuf *out, const char *text, size_t columns)
{
	if (shorten_columns(text) <= columns)
		strbuf_add(out, text);
	else
		cut_middle(out, text, columns, columns / 2);
}

void shorten_end(struct strbuf *out, const char *text, size_t columns)
{
	if (shorten_columns(text) <= columns)
		strbuf_add(out, text);
	else
		cut_middle(out, text, columns, columns);
}

void shorten_path(struct strbuf *out, const char *path, size_t columns)
{
	size_t all = shorten_columns(path);
	const char *tail, *slash;

	if (all <= columns) {
		strbuf_add(out, path);
		return;
	}
	if (!columns)
		return;
	tail = skip_columns(path, all - (columns - 1));
	slash = strchr(tail, '/');
	if (slash && slash[1] && shorten_columns(slash) >= columns * 2 / 3)
		tail = slash;
	strbuf_add(out, ELLIPSIS);
	strbuf_add(out, tail);
}

static void shorten_tail(struct strbuf *out, const char *name, size_t columns)
{
	const char *tail = fitting_tail(name, columns);

	if (tail)
		strbuf_addf(out, ELLIPSIS "::%s", tail);
	else
		cut_middle(out, name, columns, columns * 2 / 3);
}

/*
 * "[unknown] libfoo.so+0x1f600": the address tells the function, then the file. Nothing of other
 * names.
 */
static bool shorten_unnamed(struct strbuf *out, const char *name, size_t columns)
{
	const char *address = strrchr(name, '+');
	const char *file = name + strlen(CAPTURE_UNNAMED_PREFIX);

	if (strncmp(name, CAPTURE_UNNAMED_PREFIX, strlen(CAPTURE_UNNAMED_PREFIX)) != 0 || !address)
		return false;
	if (shorten_columns(file) <= columns)
		strbuf_add(out, file);
	else if (shorten_columns(address) < columns)
		strbuf_addf(out, ELLIPSIS "%s", address);
	else
		return false;
	return true;
}

void shorten_name(struct strbuf *out, const char *name, size_t columns)
{
	_cleanup_strbuf_ struct strbuf templates = {0};
	_cleanup_strbuf_ struct strbuf parameters = {0};

	if (shorten_columns(name) <= columns) {
		strbuf_add(out, name);
		return;
	}
	if (shorten_unnamed(out, name, columns))
		return;
	elide(&templates, name, opens_template);
	strbuf_inherit_status(out, &templates);
	if (shorten_columns(strbuf_cstr(&templates)) <= columns) {
		strbuf_add(out, strbuf_cstr(&templates));
		return;
	}
	elide(&parameters, strbuf_cstr(&templates), opens_parameters);
	strbuf_inherit_status(out, &parameters);
	if (shorten_columns(strbuf_cstr(&parameters)) <= columns)
		strbuf_add(out, strbuf_cstr(&parameters));
	else
		shorten_tail(out, strbuf_cstr(&parameters), columns);
}
