/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde runs`: what its subcommands share. */
#pragma once

#include "cli/command.h"
#include "report/render.h"
#include "store/documents.h"

extern const struct command runs_add_command;
extern const struct command runs_analyse_command;
extern const struct command runs_check_command;
extern const struct command runs_compact_command;
extern const struct command runs_compare_command;
extern const struct command runs_delete_command;
extern const struct command runs_export_command;
extern const struct command runs_import_command;
extern const struct command runs_list_command;
extern const struct command runs_note_command;
extern const struct command runs_regressions_command;
extern const struct command runs_retention_command;
extern const struct command runs_show_command;
extern const struct command runs_stats_command;
extern const struct command runs_tag_command;

#define STORE_OPTION(of_value)                                                                     \
	{                                                                                          \
		.long_name = "store", .type = OPTION_STRING, .argument = "FILE|URL",               \
		.help = "The runs database: a file, or http://HOST:8123/?database=NAME of a "      \
			"ClickHouse server. Default: $XDG_STATE_HOME/sonde/runs.db, or "           \
			"~/.local/state/sonde/runs.db.",                                           \
		.value = (void *)&(of_value)                                                       \
	}

/* In which form a document is printed. */
struct runs_form {
	bool json, csv, schema;
};

#define FORM_OPTIONS(form)                                                                         \
	{.long_name = "json",                                                                      \
		.type = OPTION_FLAG,                                                               \
		.help = "Print one JSON document instead.",                                        \
		.value = &(form).json},                                                            \
		{.long_name = "csv",                                                               \
			.type = OPTION_FLAG,                                                       \
			.help = "Print comma-separated values (RFC 4180) instead.",                \
			.value = &(form).csv},                                                     \
	{                                                                                          \
		.long_name = "schema", .type = OPTION_FLAG,                                        \
		.help = "Print the JSON Schema of what --json prints.", .value = &(form).schema    \
	}

/* Which runs, as options say it. */
struct runs_choice {
	struct store_filter filter;
	const char *since, *until;
	struct option_strings tags;
};

#define CHOICE_GROUP "Which runs (* in a name stands for anything)"

#define CHOICE_OPTIONS(choice)                                                                     \
	{.long_name = "model",                                                                     \
		.type = OPTION_STRING,                                                             \
		.argument = "NAME",                                                                \
		.help = "Only runs of this model.",                                                \
		.value = (void *)&(choice).filter.model,                                           \
		.group = CHOICE_GROUP},                                                            \
		{.long_name = "tag",                                                               \
			.type = OPTION_STRINGS,                                                    \
			.argument = "TAG",                                                         \
			.help = "Only runs with this tag; several: with all of them.",             \
			.value = &(choice).tags,                                                   \
			.group = CHOICE_GROUP},                                                    \
		{.long_name = "experiment",                                                        \
			.type = OPTION_STRING,                                                     \
			.argument = "NAME",                                                        \
			.help = "Only runs of this experiment.",                                   \
			.value = (void *)&(choice).filter.experiment,                              \
			.group = CHOICE_GROUP},                                                    \
		{.long_name = "commit",                                                            \
			.type = OPTION_STRING,                                                     \
			.argument = "ID",                                                          \
			.help = "Only runs of this commit.",                                       \
			.value = (void *)&(choice).filter.commit,                                  \
			.group = CHOICE_GROUP},                                                    \
		{.long_name = "engine",                                                            \
			.type = OPTION_STRING,                                                     \
			.argument = "NAME",                                                        \
			.help = "Only runs of this inference engine.",                             \
			.value = (void *)&(choice).filter.engine,                                  \
			.group = CHOICE_GROUP},                                                    \
		{.long_name = "search",                                                            \
			.type = OPTION_STRING,                                                     \
			.argument = "TEXT",                                                        \
			.help = "Only runs with this text in path, command, notes or model.",      \
			.value = (void *)&(choice).filter.search,                                  \
			.group = CHOICE_GROUP},                                                    \
		{.long_name = "since",                                                             \
			.type = OPTION_STRING,                                                     \
			.argument = "DATE",                                                        \
			.help = "Only runs that were recorded then or later: 2026-11-23, "         \
				"2026-11-23T14:30, or 7d: so many days ago.",                      \
			.value = (void *)&(choice).since,                                          \
			.group = CHOICE_GROUP},                                                    \
	{                                                                                          \
		.long_name = "until", .type = OPTION_STRING, .argument = "DATE",                   \
		.help = "Only runs that were recorded before.", .value = (void *)&(choice).until,  \
		.group = CHOICE_GROUP                                                              \
	}

/* Fills in choice->filter. Returns 0, or -EINVAL with a sentence. */
int runs_choose(struct runs_choice *choice, struct errmsg *err);
/* Returns 0, or -EINVAL with a sentence. */
int runs_check_form(const struct runs_form *form, struct errmsg *err);
/* Prints the result of a document, or why there is none. Returns the exit status. */
int runs_print(const struct result *result, const struct runs_form *form);
