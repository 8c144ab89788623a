/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde completion SHELL`, and what the scripts of all shells share. */
#include "cli/completion/completion.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/help.h"

enum completion_kind completion_option_kind(const struct option *option)
{
	static const struct {
		const char *name;
		enum completion_kind kind;
	} kinds[] = {
		{"FILE", COMPLETION_FILE},
		{"PATH", COMPLETION_FILE},
		{"CAPTURE", COMPLETION_FILE},
		{"DIR", COMPLETION_DIRECTORY},
		{"DIRECTORY", COMPLETION_DIRECTORY},
		{"PID", COMPLETION_PID},
	};

	if (option->type == OPTION_CHOICE)
		return COMPLETION_CHOICE;
	for (size_t index = 0; option->argument && index < ARRAY_SIZE(kinds); index++) {
		if (strcmp(option->argument, kinds[index].name) == 0)
			return kinds[index].kind;
	}
	return COMPLETION_OTHER;
}

enum completion_kind completion_argument_kind(const struct command *command)
{
	if (command->stops_at_first_argument)
		return COMPLETION_PROGRAM;
	if (command == &help_command || command == &man_command)
		return COMPLETION_SONDE_COMMAND;
	if (command == &completion_command)
		return COMPLETION_SHELL;
	return command->maximum_arguments == 0 ? COMPLETION_OTHER : COMPLETION_FILE;
}

void completion_add_choices(struct strbuf *out, const struct option *option)
{
	const char *const *choices = option_choices(option);

	for (const char *const *choice = choices; *choice; choice++)
		strbuf_addf(out, "%s%s", choice == choices ? "" : " ", *choice);
}

void completion_add_commands(struct strbuf *out)
{
	const char *separator = "";

	for (const struct command *const *command = commands; *command; command++) {
		if ((*command)->hidden)
			continue;
		strbuf_addf(out, "%s%s", separator, (*command)->name);
		separator = " ";
	}
}

void completion_add_subcommands(struct strbuf *out, const struct command *command)
{
	const char *separator = "";

	for (const struct command *const *item = command->subcommands; *item; item++) {
		strbuf_addf(out, "%s%s", separator, subcommand_word(*item));
		separator = " ";
	}
}

static int run_completion(int count, char **arguments)
{
	_cleanup_strbuf_ struct strbuf script = {0};
	struct errmsg err;

	if (strcmp(arguments[0], "bash") == 0) {
		completion_bash(&script);
	} else if (strcmp(arguments[0], "zsh") == 0) {
		completion_zsh(&script);
	} else if (strcmp(arguments[0], "fish") == 0) {
		completion_fish(&script);
	} else {
		errmsg_set(&err, 0,
			"there is no completion for '%.60s'; the shells known are bash, zsh and "
			"fish",
			arguments[0]);
		return fail_usage(&err);
	}
	if (strbuf_status(&script) < 0) {
		errmsg_set(&err, 0, "out of memory");
		return fail(&err);
	}
	fputs(strbuf_cstr(&script), stdout);
	return EXIT_OK;
}

const struct command completion_command = {
	.name = "completion",
	.summary = "print a completion script for bash, zsh or fish",
	.usage = "bash|zsh|fish",
	.description = "Prints a script that lets the shell complete sonde's commands, options and "
		       "their values.",
	.examples = "source <(sonde completion bash)\n"
		    "    complete in this shell\n"
		    "sonde completion fish > ~/.config/fish/completions/sonde.fish\n"
		    "    complete in every fish from now on",
	.minimum_arguments = 1,
	.maximum_arguments = 1,
	.run = run_completion,
};
