/* SPDX-License-Identifier: Apache-2.0 */
/* Help, generated from the command and option tables. */
#pragma once

#include <stddef.h>

#include "base/strbuf.h"
#include "cli/command.h"

/* What sonde is, in one line. */
extern const char help_tagline[];

/* NULL when there is no such command. Hidden ones are found too. */
const struct command *command_find(const char *name);
/* A finished sentence for a word that is no command. */
void command_unknown(const char *name, struct errmsg *err);
/* The same for the second word of a command that has subcommands. */
const struct command *subcommand_find(const struct command *command, const char *word);
void subcommand_unknown(const struct command *command, const char *word, struct errmsg *err);
/* "link" of "chakra link". */
const char *subcommand_word(const struct command *subcommand);

/* Appends `sonde --help`, laid out for `width` columns. */
void help_overview_text(struct strbuf *out, size_t width);
/* Appends `sonde COMMAND --help`. */
void help_command_text(struct strbuf *out, const struct command *command, size_t width);

/* Appends `sonde COMMAND -h`: a line for each option. */
void help_brief_text(struct strbuf *out, const struct command *command, size_t width);

/* Print to standard output for its terminal. Return the exit status. */
int help_print_start(void); /* the first three commands that a person needs */
int help_print_overview(void);
int help_print_command(const struct command *command);
int help_print_brief(const struct command *command);

/*
 * Visits the headings of a command's options in order of appearance: start with NULL; NULL at the
 * end. Options without a group are under "Options", which always comes (it holds --help).
 */
const char *help_next_group(const struct command *command, const char *group);
/* The heading an option stands under. */
const char *option_group(const struct option *option);
/* Appends the help line and, where the text does not tell, the choices and the default. */
void option_help_text(struct strbuf *out, const struct option *option);
