/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's file of commands: whose it is, and its JSON. A fault anywhere refuses it all. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "server/jobs/commands.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define SECONDS_DEFAULT 3600

/* What is read, and where the sentence of a fault goes. */
struct parse {
	struct json_reader reader;
	const char *path;    /* of the file */
	const char *command; /* that is being read; NULL: none */
	struct errmsg *err;
};

static int _printf_(2, 3) fault(const struct parse *parse, const char *format, ...)
{
	char what[400];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	return errmsg_set(parse->err, -EINVAL, "%s%s%s: %s", parse->path,
		parse->command ? ": the command " : "", parse->command ? parse->command : "", what);
}

/* ---- values ---- */

static int read_text(struct parse *parse, const char *what, char **ret_text)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct json_text inside;

	if (json_reader_string(&parse->reader, &inside) != JSON_OK)
		return fault(parse, "%s must be a string", what);
	json_text_unescape(&text, &inside);
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	if (strlen(strbuf_cstr(&text)) != text.length)
		return fault(parse, "%s cannot have a NUL", what);
	free(*ret_text);
	*ret_text = strdup(strbuf_cstr(&text));
	return *ret_text ? 0 : -ENOMEM;
}

static int read_number(struct parse *parse, const char *what, double *ret_number)
{
	struct json_text value;
	char text[40], *end;

	if (json_reader_value(&parse->reader, &value) != JSON_OK || value.length >= sizeof(text))
		return fault(parse, "%s must be a number", what);
	memcpy(text, value.bytes, value.length);
	text[value.length] = '\0';
	*ret_number = strtod(text, &end);
	if (end == text || *end || !isfinite(*ret_number))
		return fault(parse, "%s must be a number", what);
	return 0;
}

static int read_count(struct parse *parse, const char *what, double maximum, uint64_t *ret_count)
{
	double number = 0;
	int r = read_number(parse, what, &number);

	if (r < 0)
		return r;
	if (number < 0 || number > maximum || number != floor(number))
		return fault(parse, "%s must be a whole number up to %.0f", what, maximum);
	*ret_count = (uint64_t)number;
	return 0;
}

static int read_words(struct parse *parse, const char *what, struct command_words *words)
{
	enum json_status status = json_reader_enter(&parse->reader, '[');
	int r = 0;

	if (status != JSON_OK || words->list.count)
		return fault(parse, "%s must be an array of strings", what);
	while (r == 0 && (status = json_reader_item(&parse->reader)) == JSON_OK) {
		char *text = NULL;

		if (words->list.count == COMMAND_WORDS_MAX)
			return fault(parse, "%s has more than %d strings", what, COMMAND_WORDS_MAX);
		r = read_text(parse, what, &text);
		if (r == 0)
			r = command_words_add(words, text);
	}
	return r < 0 ? r : status == JSON_DONE ? 0 : fault(parse, "%s is cut off", what);
}

static bool is_name(const char *name)
{
	size_t length = strlen(name);

	return length && length <= COMMAND_NAME_MAX && strspn(name, NAME_CHARACTERS) == length &&
	       name[0] != '.' && name[0] != '-';
}

/* ---- members ---- */

struct member {
	const char *name;
	int (*read)(struct parse *parse, void *thing);
};

/* An object of these members, each at most once, and no others. */
static int read_object(
	struct parse *parse, const char *what, const struct member *members, void *thing)
{
	struct json_text name;
	uint64_t seen = 0;
	enum json_status status = json_reader_enter(&parse->reader, '{');

	while (status == JSON_OK &&
		(status = json_reader_member(&parse->reader, &name)) == JSON_OK) {
		unsigned i = 0;
		int r;

		while (members[i].name && !json_text_equals(&name, members[i].name))
			i++;
		if (!members[i].name || (seen & 1ULL << i))
			return fault(parse, "the member '%.*s' of %s %s",
				(int)MIN(name.length, (size_t)64), name.bytes, what,
				members[i].name ? "comes twice" : "is unknown");
		seen |= 1ULL << i;
		r = members[i].read(parse, thing);
		if (r < 0)
			return r;
	}
	return status == JSON_DONE ? 0 : fault(parse, "%s must be an object of JSON", what);
}

/* ---- parameters ---- */

static int parameter_name(struct parse *parse, void *thing)
{
	struct command_parameter *parameter = thing;
	int r = read_text(parse, "the name of a parameter", &parameter->name);

	if (r == 0 && !is_name(parameter->name))
		r = fault(parse, "a parameter's name must be letters, digits, '.', '_' and '-'");
	return r;
}

static int parameter_type(struct parse *parse, void *thing)
{
	struct command_parameter *parameter = thing;
	char *name = NULL;
	int r = read_text(parse, "a type", &name);

	for (int i = 0; r == 0 && i < COMMAND_TYPE_MAX; i++) {
		if (name && strcmp(name, command_type_names[i]) == 0) {
			parameter->type = (enum command_type)i;
			free(name);
			return 0;
		}
	}
	if (r == 0)
		r = fault(parse,
			"the type of a parameter is string, integer, number or choice, not '%.40s'",
			name);
	free(name);
	return r;
}

static int parameter_minimum(struct parse *parse, void *thing)
{
	struct command_parameter *parameter = thing;

	parameter->has_minimum = true;
	return read_number(parse, "minimum", &parameter->minimum);
}

static int parameter_maximum(struct parse *parse, void *thing)
{
	struct command_parameter *parameter = thing;

	parameter->has_maximum = true;
	return read_number(parse, "maximum", &parameter->maximum);
}

static int parameter_choices(struct parse *parse, void *thing)
{
	return read_words(parse, "choices", &((struct command_parameter *)thing)->choices);
}

struct read_parameter {
	struct command_parameter parameter; /* first */
	struct json_text initial;           /* checked when its type is known */
};

static int parameter_default(struct parse *parse, void *thing)
{
	struct read_parameter *read = thing;

	return json_reader_value(&parse->reader, &read->initial) == JSON_OK
		       ? 0
		       : fault(parse, "a default is cut off");
}

static int check_parameter(struct parse *parse, struct read_parameter *read)
{
	struct command_parameter *parameter = &read->parameter;
	struct errmsg reason;
	int r;

	if (!parameter->name || parameter->type == COMMAND_TYPE_MAX)
		return fault(parse, "a parameter needs name and type");
	if ((parameter->type == COMMAND_CHOICE) != (parameter->choices.list.count > 0))
		return fault(parse, "the parameter %s: choices belong to the type choice",
			parameter->name);
	if (parameter->type == COMMAND_STRING &&
		(parameter->has_minimum || parameter->maximum < 0 ||
			parameter->maximum > COMMAND_VALUE_MAX))
		return fault(parse,
			"the parameter %s: maximum is its bytes, at most %d, and minimum is of "
			"numbers",
			parameter->name, COMMAND_VALUE_MAX);
	if (!read->initial.bytes)
		return 0;
	r = command_value(parameter, &read->initial, &parameter->initial, &reason);
	return r == -EINVAL ? fault(parse, "the default of %s", reason.text) : r;
}

static int read_parameter(struct parse *parse, struct job_command *command)
{
	static const struct member members[] = {
		{"name", parameter_name},
		{"type", parameter_type},
		{"default", parameter_default},
		{"minimum", parameter_minimum},
		{"maximum", parameter_maximum},
		{"choices", parameter_choices},
		{0},
	};
	struct read_parameter read = {.parameter.type = COMMAND_TYPE_MAX};
	int r = read_object(parse, "a parameter", members, &read);

	if (r == 0)
		r = check_parameter(parse, &read);
	for (size_t i = 0; r == 0 && i < command->parameters.count; i++) {
		if (strcmp(command->parameters.items[i].name, read.parameter.name) == 0)
			r = fault(parse, "the parameter %s comes twice", read.parameter.name);
	}
	if (r == 0 && command->parameters.count == COMMAND_WORDS_MAX)
		r = fault(parse, "it has more than %d parameters", COMMAND_WORDS_MAX);
	if (r == 0)
		r = array_append(&command->parameters, read.parameter);
	if (r < 0) {
		free(read.parameter.name);
		free(read.parameter.initial);
		command_words_done(&read.parameter.choices);
	}
	return r;
}

/* ---- a command ---- */

static int command_name(struct parse *parse, void *thing)
{
	struct job_command *command = thing;
	int r = read_text(parse, "the name of a command", &command->name);

	if (r == 0 && !is_name(command->name))
		return fault(parse,
			"a command's name must be at most %d letters, digits, '.', '_' and '-'",
			COMMAND_NAME_MAX);
	parse->command = command->name;
	return r;
}

static int command_description(struct parse *parse, void *thing)
{
	return read_text(parse, "description", &((struct job_command *)thing)->description);
}

static int command_cwd(struct parse *parse, void *thing)
{
	struct job_command *command = thing;
	int r = read_text(parse, "cwd", &command->cwd);

	return r == 0 && command->cwd[0] != '/' ? fault(parse, "cwd must begin with '/'") : r;
}

static int command_argv(struct parse *parse, void *thing)
{
	return read_words(parse, "argv", &((struct job_command *)thing)->argv);
}

/* Those options that the server sets itself, and those that do not end. */
static bool is_option_of_server(const char *word)
{
	static const char *const options[] = {"-o", "--output", "--", "-p", "--pid", "-a", "--all",
		"--view", "--serve", "--continuous", "--split", "--upload", "--session-file"};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		size_t length = strlen(options[i]);

		if (strncmp(word, options[i], length) == 0 &&
			(!word[length] || word[length] == '=' || (length == 2 && word[1] != '-')))
			return true;
	}
	return false;
}

static int command_record(struct parse *parse, void *thing)
{
	struct job_command *command = thing;
	int r = read_words(parse, "record", &command->record);

	if (r < 0)
		return r;
	array_foreach (&command->record.list, word) {
		if (is_option_of_server(*word))
			return fault(parse, "record cannot have %.40s", *word);
		if (strncmp(*word, "--window", 8) == 0)
			command->has_windows = true;
	}
	return 0;
}

static int command_environment(struct parse *parse, void *thing)
{
	struct job_command *command = thing;
	struct json_text name;
	enum json_status status = json_reader_enter(&parse->reader, '{');

	while (status == JSON_OK &&
		(status = json_reader_member(&parse->reader, &name)) == JSON_OK) {
		char *value = NULL, *text = NULL;
		int r = read_text(parse, "a value of environment", &value);

		if (r == 0 &&
			(!name.length || name.escaped || memchr(name.bytes, '=', name.length) ||
				command->environment.list.count == COMMAND_WORDS_MAX))
			r = fault(parse, "environment has a wrong name, or too many");
		if (r == 0 && asprintf(&text, "%.*s=%s", (int)name.length, name.bytes, value) < 0)
			text = NULL;
		free(value);
		if (r == 0)
			r = command_words_add(&command->environment, text);
		if (r < 0)
			return r;
	}
	return status == JSON_DONE ? 0 : fault(parse, "environment must be an object of strings");
}

static int command_parameters(struct parse *parse, void *thing)
{
	enum json_status status = json_reader_enter(&parse->reader, '[');
	int r = 0;

	while (status == JSON_OK && r == 0 &&
		(status = json_reader_item(&parse->reader)) == JSON_OK)
		r = read_parameter(parse, thing);
	return r < 0 ? r : status == JSON_DONE ? 0 : fault(parse, "parameters must be an array");
}

static int command_seconds(struct parse *parse, void *thing)
{
	return read_count(parse, "seconds", 1e6, &((struct job_command *)thing)->seconds);
}

static int command_keep(struct parse *parse, void *thing)
{
	return read_count(parse, "keep", 1e6, &((struct job_command *)thing)->keep);
}

/* A word that looks like a parameter is one; each parameter is used. */
static int check_words(struct parse *parse, const struct job_command *command)
{
	bool is_used[COMMAND_WORDS_MAX] = {false};
	size_t prefix;

	for (size_t i = 0; i < command->argv.list.count; i++) {
		const char *word = command->argv.list.items[i], *brace = strrchr(word, '{');
		const struct command_parameter *parameter =
			command_word_parameter(command, word, &prefix);
		size_t name = brace ? strspn(brace + 1, NAME_CHARACTERS) : 0;

		if (parameter)
			is_used[parameter - command->parameters.items] = true;
		else if (name && brace[1 + name] == '}')
			return fault(parse,
				"'%.100s' of argv: {NAME} is one of its parameters, at the end of "
				"an argument",
				word);
		if (parameter && i == 0)
			return fault(parse, "the program itself cannot be a parameter");
	}
	for (size_t i = 0; i < command->parameters.count; i++) {
		if (!is_used[i])
			return fault(
				parse, "no argument has {%s}", command->parameters.items[i].name);
	}
	return 0;
}

static int read_command(struct parse *parse, struct job_commands *commands)
{
	static const struct member members[] = {
		{"name", command_name},
		{"description", command_description},
		{"argv", command_argv},
		{"parameters", command_parameters},
		{"cwd", command_cwd},
		{"environment", command_environment},
		{"record", command_record},
		{"seconds", command_seconds},
		{"keep", command_keep},
		{0},
	};
	struct job_command *command;
	int r;

	if (commands->items.count == COMMANDS_MAX)
		return fault(parse, "there are more than %d commands", COMMANDS_MAX);
	if (array_append(&commands->items, (struct job_command){.seconds = SECONDS_DEFAULT}) < 0)
		return -ENOMEM;
	command = &commands->items.items[commands->items.count - 1];
	r = read_object(parse, "a command", members, command);
	if (r == 0 && (!command->name || !command->argv.list.count || !command->seconds))
		r = fault(parse, "a command needs a name, argv, and at least a second");
	if (r == 0 && commands_find(commands, command->name) != command)
		r = fault(parse, "it comes twice");
	if (r == 0)
		r = check_words(parse, command);
	parse->command = NULL;
	return r;
}

/* ---- the file ---- */

static int file_jobs(struct parse *parse, void *thing)
{
	struct job_commands *commands = thing;
	int r = read_count(parse, "jobs", 16, &commands->jobs);

	return r == 0 && !commands->jobs ? fault(parse, "jobs must be 1 to 16") : r;
}

static int file_commands(struct parse *parse, void *thing)
{
	enum json_status status = json_reader_enter(&parse->reader, '[');
	int r = 0;

	while (status == JSON_OK && r == 0 &&
		(status = json_reader_item(&parse->reader)) == JSON_OK)
		r = read_command(parse, thing);
	return r < 0 ? r : status == JSON_DONE ? 0 : fault(parse, "commands must be an array");
}

int commands_parse(struct job_commands **ret_commands, const char *text, size_t length,
	const char *path, struct errmsg *err)
{
	static const struct member members[] = {
		{"jobs", file_jobs},
		{"commands", file_commands},
		{0},
	};
	struct parse parse = {.reader = {.at = text, .end = text + length, .is_last = true},
		.path = path,
		.err = err};
	struct job_commands *commands = calloc(1, sizeof(*commands));
	int r = -ENOMEM;

	if (commands) {
		commands->jobs = 1;
		r = read_object(&parse, "the file", members, commands);
	}
	if (r == 0 && (json_reader_peek(&parse.reader) != '\0' ||
			      parse.reader.at != parse.reader.end || parse.reader.mended))
		r = fault(&parse, "a comma is wrong, or something follows its object");
	if (r < 0)
		commands_free(commands);
	else
		*ret_commands = commands;
	return r == -ENOMEM ? errmsg_set(err, r, "memory ran out while %s was read", path) : r;
}

int commands_read(struct job_commands **ret_commands, const char *path, struct errmsg *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	_cleanup_strbuf_ struct strbuf text = {0};
	struct stat status;
	int r;

	if (fd < 0 || fstat(fd, &status) < 0)
		return errmsg_set(
			err, -errno, "cannot read the commands of %s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode) || (status.st_mode & 022) ||
		(status.st_uid != geteuid() && status.st_uid != 0))
		return errmsg_set(err, -EPERM,
			"others can change the commands in %s: make it a file of yours with chmod "
			"go-w",
			path);
	r = read_whole_fd(fd, COMMANDS_FILE_BYTES, &text);
	if (r < 0)
		return errmsg_set(err, r, "cannot read the commands of %s: %s", path, strerror(-r));
	return commands_parse(ret_commands, strbuf_cstr(&text), text.length, path, err);
}
