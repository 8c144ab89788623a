/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/options.h"
#include "cli/pager.h"
#include "cli/suggest.h"

#define COMMAND_COLUMN    14
#define OPTION_COLUMN_MAX 30
#define DEFAULT_GROUP     "Options"

const char help_tagline[] = "one profiler for AI workloads, training and inference";

static const char overview_end[] = "'sonde COMMAND --help' explains one command, 'sonde doctor' "
				   "says what can be measured on this machine.";

const struct command *command_find(const char *name)
{
	for (const struct command *const *command = commands; *command; command++) {
		if (strcmp((*command)->name, name) == 0)
			return *command;
	}
	return NULL;
}

void command_unknown(const char *name, struct errmsg *err)
{
	struct suggestion suggestion = {.word = name};

	for (const struct command *const *command = commands; *command; command++) {
		if (!(*command)->hidden)
			suggestion_offer(&suggestion, (*command)->name);
	}
	if (suggestion.best)
		errmsg_set(err, 0, "there is no command '%.60s'; did you mean 'sonde %s'?", name,
			suggestion.best);
	else if (access(name, X_OK) == 0)
		errmsg_set(err, 0,
			"there is no command '%.60s'; to profile it: sonde record -- %.200s", name,
			name);
	else
		errmsg_set(err, 0, "there is no command '%.60s'; 'sonde --help' lists them", name);
}

const char *subcommand_word(const struct command *subcommand)
{
	const char *space = strchr(subcommand->name, ' ');

	return space ? space + 1 : subcommand->name;
}

const struct command *subcommand_find(const struct command *command, const char *word)
{
	for (const struct command *const *item = command->subcommands; item && *item; item++) {
		if (strcmp(subcommand_word(*item), word) == 0)
			return *item;
	}
	return NULL;
}

void subcommand_unknown(const struct command *command, const char *word, struct errmsg *err)
{
	struct suggestion suggestion = {.word = word};

	for (const struct command *const *item = command->subcommands; item && *item; item++)
		suggestion_offer(&suggestion, subcommand_word(*item));
	if (suggestion.best)
		errmsg_set(err, 0,
			"there is no command 'sonde %s %.60s'; did you mean 'sonde %s %s'?",
			command->name, word, command->name, suggestion.best);
	else
		errmsg_set(err, 0,
			"there is no command 'sonde %s %.60s'; 'sonde %s --help' lists them",
			command->name, word, command->name);
}

const char *option_group(const struct option *option)
{
	return option->group ? option->group : DEFAULT_GROUP;
}

/* Index of the group's first option; the end when it has none. */
static size_t first_of_group(const struct option *options, const char *group)
{
	size_t index = 0;

	while (options && options[index].long_name &&
		strcmp(option_group(&options[index]), group) != 0)
		index++;
	return index;
}

const char *help_next_group(const struct command *command, const char *group)
{
	const struct option *options = command->options;
	size_t after = 0;

	if (!group)
		return DEFAULT_GROUP;
	if (!options)
		return NULL;
	if (strcmp(group, DEFAULT_GROUP) != 0)
		after = first_of_group(options, group) + 1;
	for (size_t index = after; options[index].long_name; index++) {
		const char *candidate = option_group(&options[index]);

		if (strcmp(candidate, DEFAULT_GROUP) != 0 &&
			first_of_group(options, candidate) == index)
			return candidate;
	}
	return NULL;
}

static void add_choices(struct strbuf *out, const struct option *option)
{
	const char *const *choices = option_choices(option);

	strbuf_add(out, out->length ? " (" : "(");
	for (const char *const *choice = choices; *choice; choice++)
		strbuf_addf(out, "%s%s", choice == choices ? "" : ", ", *choice);
	strbuf_add_char(out, ')');
}

void option_help_text(struct strbuf *out, const struct option *option)
{
	_cleanup_strbuf_ struct strbuf standard = {0};
	const char *help = option->help ? option->help : "";

	strbuf_add(out, help);
	if (option->describe_choices)
		option->describe_choices(out);
	else if (option->type == OPTION_CHOICE && !strstr(help, option_choices(option)[0]))
		add_choices(out, option);
	if (!strcasestr(help, "default") && option_default(option, &standard))
		strbuf_addf(out, " (default %s)", strbuf_cstr(&standard));
}

static void add_option_name(struct strbuf *out, const struct option *option)
{
	if (option->short_name)
		strbuf_addf(out, "  -%c, --%s", option->short_name, option->long_name);
	else
		strbuf_addf(out, "      --%s", option->long_name);
	if (option->type != OPTION_FLAG)
		strbuf_addf(out, " %s", option->argument);
}

static size_t option_column(const struct command *command)
{
	size_t column = 0;

	for (const struct option *option = command->options; option && option->long_name;
		option++) {
		_cleanup_strbuf_ struct strbuf name = {0};
		size_t columns;

		add_option_name(&name, option);
		columns = text_columns(strbuf_cstr(&name), name.length) + 2;
		if (columns <= OPTION_COLUMN_MAX)
			column = MAX(column, columns);
	}
	return MAX(column, strlen("  -h, --help") + 2);
}

static void add_option(struct strbuf *out, const struct option *option, size_t column, size_t width)
{
	_cleanup_strbuf_ struct strbuf name = {0}, help = {0};
	size_t columns;

	add_option_name(&name, option);
	option_help_text(&help, option);
	columns = text_columns(strbuf_cstr(&name), name.length);
	strbuf_add(out, strbuf_cstr(&name));
	if (columns + 2 > column) {
		strbuf_add_char(out, '\n');
		columns = 0;
	}
	text_pad(out, column - columns);
	text_wrap(out, strbuf_cstr(&help), column, column, width);
}

static const struct option help_option = {
	.short_name = 'h',
	.long_name = "help",
	.type = OPTION_FLAG,
	.help = "Show this text; -h shows a line for each option.",
};

static void add_group(
	struct strbuf *out, const struct command *command, const char *group, size_t width)
{
	size_t column = option_column(command);

	strbuf_addf(out, "\n%s:\n", group);
	for (const struct option *option = command->options; option && option->long_name;
		option++) {
		if (strcmp(option_group(option), group) == 0)
			add_option(out, option, column, width);
	}
	if (strcmp(group, DEFAULT_GROUP) == 0)
		add_option(out, &help_option, column, width);
}

static void add_subcommands(struct strbuf *out, const struct command *command, size_t width)
{
	strbuf_add(out, "\nCommands:\n");
	for (const struct command *const *item = command->subcommands; *item; item++) {
		strbuf_addf(out, "  %-*s", COMMAND_COLUMN - 2, subcommand_word(*item));
		text_wrap(out, (*item)->summary, COMMAND_COLUMN, COMMAND_COLUMN, width);
	}
}

void help_command_text(struct strbuf *out, const struct command *command, size_t width)
{
	strbuf_addf(out, "sonde %s: %s\n\nUsage:\n  sonde %s%s%s\n", command->name,
		command->summary, command->name, command->usage && *command->usage ? " " : "",
		command->usage ? command->usage : "");
	if (command->description) {
		strbuf_add_char(out, '\n');
		text_paragraphs(out, command->description, 0, width);
	}
	if (command->subcommands)
		add_subcommands(out, command, width);
	for (const char *group = NULL; (group = help_next_group(command, group));)
		add_group(out, command, group, width);
	if (command->examples) {
		strbuf_add(out, "\nExamples:\n");
		for (const char *line = command->examples; *line;) {
			size_t length = strcspn(line, "\n");

			strbuf_add(out, "  ");
			strbuf_add_bytes(out, line, length);
			strbuf_add_char(out, '\n');
			line += length + (line[length] == '\n');
		}
	}
}

/* The help up to the end of its first clause, as far as the line goes. */
static void add_clause(struct strbuf *out, const char *help, size_t width)
{
	size_t length = 0, cut = 0;

	while (help[length] &&
		!(strchr(".:;", help[length]) && (!help[length + 1] || help[length + 1] == ' ')))
		length++;
	if (text_columns(help, length) <= width) {
		strbuf_add_bytes(out, help, length);
		return;
	}
	for (size_t i = 0; i < length && text_columns(help, i) < width; i++)
		cut = help[i] == ' ' ? i : cut;
	strbuf_add_bytes(out, help, cut);
	strbuf_add(out, "\xe2\x80\xa6");
}

static void add_brief_option(
	struct strbuf *out, const struct option *option, size_t column, size_t width)
{
	_cleanup_strbuf_ struct strbuf name = {0};
	size_t columns;

	add_option_name(&name, option);
	columns = text_columns(strbuf_cstr(&name), name.length);
	strbuf_add(out, strbuf_cstr(&name));
	text_pad(out, columns + 2 > column ? 2 : column - columns);
	column = MAX(column, columns + 2);
	if (option->help && column < width)
		add_clause(out, option->help, width - column);
	strbuf_add_char(out, '\n');
}

void help_brief_text(struct strbuf *out, const struct command *command, size_t width)
{
	size_t column = option_column(command);

	strbuf_addf(out, "sonde %s: %s\nUsage: sonde %s %s\n", command->name, command->summary,
		command->name, command->usage ? command->usage : "");
	for (const char *group = NULL; (group = help_next_group(command, group));) {
		strbuf_addf(out, "\n%s:\n", group);
		for (const struct option *option = command->options; option && option->long_name;
			option++) {
			if (strcmp(option_group(option), group) == 0)
				add_brief_option(out, option, column, width);
		}
		if (strcmp(group, DEFAULT_GROUP) == 0)
			add_brief_option(out, &help_option, column, width);
	}
	strbuf_addf(out, "\n'sonde %s --help' explains them.\n", command->name);
}

static const char start_text[] =
	"  sonde record -- python3 train.py    record a command, with all its threads and children\n"
	"  sonde report                        where its time went, and what to change\n"
	"  sonde view                          the same in the browser\n\n"
	"'sonde --help' lists all commands, 'sonde doctor' says what can be measured on this machine.\n";

void help_overview_text(struct strbuf *out, size_t width)
{
	strbuf_addf(out,
		"sonde: %s\n\nUsage:\n  sonde COMMAND [options] [arguments]\n"
		"  sonde --help | --version\n\nCommands:\n",
		help_tagline);
	for (const struct command *const *command = commands; *command; command++) {
		if ((*command)->hidden)
			continue;
		strbuf_addf(out, "  %-*s", COMMAND_COLUMN - 2, (*command)->name);
		text_wrap(out, (*command)->summary, COMMAND_COLUMN, COMMAND_COLUMN, width);
	}
	strbuf_add_char(out, '\n');
	text_wrap(out, overview_end, 0, 0, width);
}

static int print(struct strbuf *text)
{
	struct errmsg err;

	if (strbuf_status(text) < 0) {
		errmsg_set(&err, 0, "out of memory");
		return fail(&err);
	}
	pager_print(text);
	return EXIT_OK;
}

int help_print_overview(void)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	help_overview_text(&text, text_terminal_width(stdout));
	return print(&text);
}

int help_print_start(void)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "sonde: %s\n\n%s", help_tagline, start_text);
	return print(&text);
}

int help_print_brief(const struct command *command)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	help_brief_text(&text, command, text_terminal_width(stdout));
	return print(&text);
}

int help_print_command(const struct command *command)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	help_command_text(&text, command, text_terminal_width(stdout));
	return print(&text);
}

static int run_help(int count, char **arguments)
{
	const struct command *command;
	struct errmsg err;

	if (count == 0)
		return help_print_overview();
	command = command_find(arguments[0]);
	if (!command) {
		command_unknown(arguments[0], &err);
		return fail_usage(&err);
	}
	if (count == 1)
		return help_print_command(command);
	if (subcommand_find(command, arguments[1]))
		return help_print_command(subcommand_find(command, arguments[1]));
	subcommand_unknown(command, arguments[1], &err);
	return fail_usage(&err);
}

const struct command help_command = {
	.name = "help",
	.summary = "explain sonde or one of its commands",
	.usage = "[COMMAND [SUBCOMMAND]]",
	.description =
		"Without a COMMAND, lists all commands. 'sonde COMMAND --help' says the same.",
	.examples = "sonde help record\n    what can be recorded, and how",
	.maximum_arguments = 2,
	.run = run_help,
};
