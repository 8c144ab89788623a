/* SPDX-License-Identifier: Apache-2.0 */
#include "base/warn.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/errmsg.h"
#include "base/escape.h"

/*
 * File names, and names that targets gave themselves, end up in sentences: control characters must
 * not reach the terminal, where they could change its state or hide text. Lines stay lines.
 */
static void print_safely(FILE *stream, const char *text)
{
	_cleanup_strbuf_ struct strbuf safe = {0};

	escape_lines(&safe, text);
	fputs(strbuf_cstr(&safe), stream);
}

void print_sentence(const char *text)
{
	flockfile(stderr);
	fputs("sonde: ", stderr);
	print_safely(stderr, text);
	putc('\n', stderr);
	funlockfile(stderr);
}

static bool is_quiet;

void warn_no_more(void)
{
	is_quiet = true;
}

void warn(const char *format, ...)
{
	char text[sizeof(struct errmsg)];
	va_list arguments;

	if (is_quiet)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	print_sentence(text);
}

void print_plain(const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	if (text)
		print_safely(stderr, text);
}
