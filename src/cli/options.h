/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a command line by the command's option table (cli/command.h). */
#pragma once

#include <stdbool.h>

#include "base/errmsg.h"
#include "cli/command.h"

struct parsed_arguments {
	int count;                         /* positional arguments */
	char **values;                     /* NULL-ended; points into the array that was parsed */
	bool wants_help, wants_brief_help; /* --help, -h */
};

/*
 * Parses the NULL-ended `words` that follow the command's name. Understood are -x, -xVALUE, -x
 * VALUE, clusters of flags (-ab), --name, --name=VALUE, --name VALUE, "--" which ends the options,
 * and -h,
 * --help everywhere. Options may follow arguments unless the command stops at its first one.
 *
 * `words` is reordered: the positional arguments move to its front. Option values are stored only
 * when the whole line is right and help is not wanted, so help still finds the defaults in the
 * table.
 *
 * Returns 0, or -EINVAL and a sentence that says what to write instead.
 */
int options_parse(const struct command *command, char **words,
	struct parsed_arguments *ret_arguments, struct errmsg *err);

/* Appends the option's default as a person would type it; false when it has none. */
struct strbuf;
bool option_default(const struct option *option, struct strbuf *text);
