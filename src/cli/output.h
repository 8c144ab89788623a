/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a command's result where -o says. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/errmsg.h"
#include "exporters/exporter.h"
#include "report/render.h"
#include "report/table.h"

/* "-" */
bool output_is_standard(const char *path);
/*
 * Writes all bytes: to standard output, into an existing device or pipe, else a whole file at once,
 * so that a failure leaves the old one. Says on standard error what was written, unless that is
 * standard output. The error names the path, the reason and what to try.
 */
int output_write(const char *path, const void *bytes, size_t length, struct errmsg *err);
/*
 * Writes the files of a folder, which is made where it is missing; each is replaced whole, others
 * in it stay. The last line of the above holds, too.
 */
int output_write_folder(const char *folder, const struct export_files *files, struct errmsg *err);

#define COLOUR_OPTION                                                                              \
	{                                                                                          \
		.long_name = "color", .type = OPTION_CHOICE, .argument = "WHEN",                   \
		.help = "Colours: always, never, or auto: on a terminal, without $NO_COLOR.",      \
		.value = (void *)&terminal_colour, .choices = terminal_colours                     \
	}

/* Prints a document by itself. Returns 0 or -ENOMEM. */
int output_result(const struct result *result, enum report_form form);
/* Prints a JSON Schema, or why it cannot. Returns the exit status. */
int output_schema(int (*write)(struct strbuf *out));
