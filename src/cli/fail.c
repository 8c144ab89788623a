/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where sonde speaks on standard error. */
#include <stdarg.h>
#include <stdio.h>

#include "cli/command.h"

/*
 * File names and arguments of other people end up in sentences: control characters must not reach
 * the terminal, where they could change its state or hide text.
 */
static void print_sentence(const char *text)
{
	flockfile(stderr);
	fputs("sonde: ", stderr);
	for (const unsigned char *cursor = (const unsigned char *)text; *cursor; cursor++) {
		if ((*cursor < ' ' && *cursor != '\n' && *cursor != '\t') || *cursor == 0x7f)
			fprintf(stderr, "\\x%02x", *cursor);
		else
			putc(*cursor, stderr);
	}
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
