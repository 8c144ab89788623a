/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How `sonde chakra link` and `convert` speak: on standard error, as much as was asked for, and
 * into a log file. Not for several threads at once.
 */
#pragma once

#include <errno.h>

#include "cli/command.h"

/* Python's levels: what is below is not printed. */
enum chakra_level {
	CHAKRA_DEBUG,
	CHAKRA_INFO,     /* results */
	CHAKRA_WARNING,  /* notes: what was lost or is not known */
	CHAKRA_ERROR,    /* what failed */
	CHAKRA_CRITICAL, /* the same */
	CHAKRA_LEVEL_MAX,
	CHAKRA_LEVEL_INVALID = -EINVAL,
};

/* By name, in any case. */
enum chakra_level chakra_level_from_string(const char *name);
/* Default: CHAKRA_INFO. */
void chakra_set_level(enum chakra_level level);

/* All messages are written there, too. Returns 0 or a negative errno with a sentence. */
int chakra_log_open(const char *path, struct errmsg *err);
/* Failures are reported. Returns the exit status: `status`, or EXIT_ERROR when the log is not
 * whole. */
int chakra_log_close(int status);

/* "sonde: ", the result of a file. */
void chakra_say(const char *format, ...) _printf_(1, 2);
/* "  LABEL   ", more of the result. */
void chakra_say_more(const char *label, const char *format, ...) _printf_(2, 3);
/* "  note    " */
void chakra_note(const char *format, ...) _printf_(1, 2);
/* As fail(). */
int chakra_fail(const struct errmsg *err);
