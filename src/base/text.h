/* SPDX-License-Identifier: Apache-2.0 */
/* What text begins with, and laying it out for a terminal of some width. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

static inline bool begins_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Columns a terminal shows for `length` bytes of UTF-8: two for a character of Chinese, Japanese or
 * Korean and for most emoji, none for a mark that combines with the character before it. */
size_t text_columns(const char *text, size_t length);

/* The bytes of the character that `text`, which is not empty, begins with, and its columns. */
size_t text_character(const char *text, size_t *ret_columns);

/* The width to lay out for: the terminal's behind `file`, at most 100; 80 when it is no terminal.
 */
size_t text_terminal_width(FILE *file);

/*
 * Appends words broken into lines of at most `width` columns. The first line goes on at column
 * `column`, the others begin at `indent`. Ends with a newline.
 */
void text_wrap(struct strbuf *out, const char *text, size_t column, size_t indent, size_t width);

/*
 * Appends paragraphs: lines are joined and broken anew, a blank line separates paragraphs, lines
 * that begin with white space are kept as they are.
 */
void text_paragraphs(struct strbuf *out, const char *text, size_t indent, size_t width);

/* Appends that many spaces. */
void text_pad(struct strbuf *out, size_t count);
