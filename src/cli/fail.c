/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where sonde speaks on standard error. */
#include <stdarg.h>
#include <stdio.h>

#include "base/escape.h"
#include "cli/command.h"

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

static void print_sentence(const char *text)
{
	flockfile(stderr);
	fputs("sonde: ", stderr);
	print_safely(stderr, text);
	putc('\n', stderr);
	funlockfile(stderr);
}

int fail(const struct errmsg *err)
{
	/* What was printed so far belongs before the sentence, also when both go to one file. */
	fflush(stdout);
	print_sentence(err->text);
	return EXIT_ERROR;
}

int fail_usage(const struct errmsg *err)
{
	fail(err);
	return EXIT_USAGE;
}

void warn(const char *format, ...)
{
	char text[sizeof(struct errmsg)];
	va_list arguments;

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
