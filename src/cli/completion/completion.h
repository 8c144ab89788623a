/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion scripts: one file per shell, all generated from the command and option tables. What
 * they share is here.
 */
#pragma once

#include "base/strbuf.h"
#include "cli/command.h"

/* What a value is, identified by its name in the tables. */
enum completion_kind {
	COMPLETION_OTHER,
	COMPLETION_FILE,
	COMPLETION_DIRECTORY,
	COMPLETION_PID,
	COMPLETION_CHOICE,
	COMPLETION_PROGRAM,
	COMPLETION_SONDE_COMMAND,
	COMPLETION_SHELL,
};

#define FOREACH_OPTION(option, command)                                                            \
	for (const struct option *option = (command)->options; option && option->long_name;        \
		option++)

enum completion_kind completion_option_kind(const struct option *option);
/* Of the command's positional arguments. */
enum completion_kind completion_argument_kind(const struct command *command);
/* Appends the option's choices, or all commands that are not hidden, separated by spaces. */
void completion_add_choices(struct strbuf *out, const struct option *option);
void completion_add_commands(struct strbuf *out);
/* The second words of the command. */
void completion_add_subcommands(struct strbuf *out, const struct command *command);

/* Append the whole script. */
void completion_bash(struct strbuf *out);
void completion_zsh(struct strbuf *out);
void completion_fish(struct strbuf *out);
