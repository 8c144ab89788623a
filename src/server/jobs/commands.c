/* SPDX-License-Identifier: Apache-2.0 */
#include "server/jobs/commands.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const command_type_names[COMMAND_TYPE_MAX] = {
	[COMMAND_STRING] = "string",
	[COMMAND_INTEGER] = "integer",
	[COMMAND_NUMBER] = "number",
	[COMMAND_CHOICE] = "choice",
};

int command_words_add(struct command_words *words, char *text)
{
	if (text && array_append(&words->list, text) == 0)
		return 0;
	free(text);
	return -ENOMEM;
}

void command_words_done(struct command_words *words)
{
	array_foreach (&words->list, word)
		free(*word);
	array_done(&words->list);
}

static void command_done(struct job_command *command)
{
	free(command->name);
	free(command->description);
	free(command->cwd);
	command_words_done(&command->argv);
	command_words_done(&command->record);
	command_words_done(&command->environment);
	array_foreach (&command->parameters, parameter) {
		free(parameter->name);
		free(parameter->initial);
		command_words_done(&parameter->choices);
	}
	array_done(&command->parameters);
}

struct job_commands *commands_free(struct job_commands *commands)
{
	if (commands) {
		array_foreach (&commands->items, command)
			command_done(command);
		array_done(&commands->items);
		free(commands);
	}
	return NULL;
}

const struct job_command *commands_find(const struct job_commands *commands, const char *name)
{
	if (!commands)
		return NULL;
	array_foreach (&commands->items, command) {
		if (strcmp(command->name, name) == 0)
			return command;
	}
	return NULL;
}

/* ---- values ---- */

static int refuse_number(const struct command_parameter *parameter, struct errmsg *err)
{
	const char *what = parameter->type == COMMAND_INTEGER ? "a whole number" : "a number";

	if (parameter->has_minimum && parameter->has_maximum)
		return errmsg_set(err, -EINVAL, "%s must be %s from %g to %g", parameter->name,
			what, parameter->minimum, parameter->maximum);
	if (parameter->has_minimum || parameter->has_maximum)
		return errmsg_set(err, -EINVAL, "%s must be %s of at %s %g", parameter->name, what,
			parameter->has_minimum ? "least" : "most",
			parameter->has_minimum ? parameter->minimum : parameter->maximum);
	return errmsg_set(err, -EINVAL, "%s must be %s", parameter->name, what);
}

/* As it was written, of the characters that JSON has for numbers. */
static int number_value(const struct command_parameter *parameter, const struct json_text *value,
	char **ret_text, struct errmsg *err)
{
	const char *allowed =
		parameter->type == COMMAND_INTEGER ? "-0123456789" : "-+.eE0123456789";
	char text[40], *end;
	double number;

	if (value->length >= sizeof(text))
		return refuse_number(parameter, err);
	memcpy(text, value->bytes, value->length);
	text[value->length] = '\0';
	number = strtod(text, &end);
	if (end == text || *end || strspn(text, allowed) != value->length || !isfinite(number) ||
		(parameter->has_minimum && number < parameter->minimum) ||
		(parameter->has_maximum && number > parameter->maximum))
		return refuse_number(parameter, err);
	*ret_text = strdup(text);
	return *ret_text ? 0 : -ENOMEM;
}

static bool is_choice(const struct command_parameter *parameter, const char *text)
{
	array_foreach (&parameter->choices.list, choice) {
		if (strcmp(*choice, text) == 0)
			return true;
	}
	return false;
}

/* UTF-8 without control characters: a line that a person typed. */
static bool is_line(const char *text, size_t length)
{
	for (size_t at = 0, count; at < length; at += count) {
		count = utf8_sequence_length(text + at, length - at);
		if (!count || (unsigned char)text[at] < ' ' || text[at] == 0x7f)
			return false;
	}
	return true;
}

static int string_value(const struct command_parameter *parameter, const struct json_text *value,
	char **ret_text, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	const struct json_text inside = json_text_inside(value);
	size_t longest = parameter->has_maximum ? (size_t)parameter->maximum : COMMAND_VALUE_MAX;

	if (!json_text_is_string(value))
		return errmsg_set(err, -EINVAL, "%s must be a string", parameter->name);
	json_text_unescape(&text, &inside);
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	if (parameter->type == COMMAND_CHOICE && !is_choice(parameter, strbuf_cstr(&text)))
		return errmsg_set(err, -EINVAL,
			"%s must be one of its choices; /api/commands lists them", parameter->name);
	if (!is_line(strbuf_cstr(&text), text.length) || text.length > longest)
		return errmsg_set(err, -EINVAL, "%s must be one line of at most %zu bytes",
			parameter->name, longest);
	*ret_text = strdup(strbuf_cstr(&text));
	return *ret_text ? 0 : -ENOMEM;
}

int command_value(const struct command_parameter *parameter, const struct json_text *value,
	char **ret_text, struct errmsg *err)
{
	if (parameter->type == COMMAND_STRING || parameter->type == COMMAND_CHOICE)
		return string_value(parameter, value, ret_text, err);
	return number_value(parameter, value, ret_text, err);
}

/* ---- the command line ---- */

const struct command_parameter *command_word_parameter(
	const struct job_command *command, const char *word, size_t *ret_prefix)
{
	size_t length = strlen(word);
	const char *brace = strrchr(word, '{');

	if (!brace || word[length - 1] != '}')
		return NULL;
	array_foreach (&command->parameters, parameter) {
		size_t name = strlen(parameter->name);

		if (name == (size_t)(word + length - 2 - brace) &&
			strncmp(brace + 1, parameter->name, name) == 0) {
			*ret_prefix = (size_t)(brace - word);
			return parameter;
		}
	}
	return NULL;
}

/* The value of each parameter of the command: given, or its default. */
struct values {
	char *texts[COMMAND_WORDS_MAX];
};

static int take_values(const struct job_command *command, const struct json_text *object,
	struct values *values, struct errmsg *err)
{
	struct json_reader reader = {
		.at = object->bytes, .end = object->bytes + object->length, .is_last = true};
	struct json_text name, value;

	if (json_reader_enter(&reader, '{') != JSON_OK)
		return errmsg_set(err, -EINVAL, "parameters must be an object");
	while (json_reader_member(&reader, &name) == JSON_OK &&
		json_reader_value(&reader, &value) == JSON_OK) {
		size_t place = 0;
		int r;

		while (place < command->parameters.count &&
			!json_text_equals(&name, command->parameters.items[place].name))
			place++;
		if (place == command->parameters.count)
			return errmsg_set(err, -EINVAL, "%s has no parameter '%.*s'", command->name,
				(int)MIN(name.length, (size_t)64), name.bytes);
		if (values->texts[place])
			return errmsg_set(err, -EINVAL, "the parameter %s comes twice",
				command->parameters.items[place].name);
		r = command_value(
			&command->parameters.items[place], &value, &values->texts[place], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int set_defaults(
	const struct job_command *command, struct values *values, struct errmsg *err)
{
	for (size_t i = 0; i < command->parameters.count; i++) {
		const struct command_parameter *parameter = &command->parameters.items[i];

		if (values->texts[i])
			continue;
		if (!parameter->initial)
			return errmsg_set(
				err, -EINVAL, "the parameter %s must be given", parameter->name);
		values->texts[i] = strdup(parameter->initial);
		if (!values->texts[i])
			return -ENOMEM;
	}
	return 0;
}

static int add_word(const struct job_command *command, const char *word,
	const struct values *values, struct command_words *words, struct errmsg *err)
{
	size_t prefix = 0;
	const struct command_parameter *parameter = command_word_parameter(command, word, &prefix);
	const char *value = parameter ? values->texts[parameter - command->parameters.items] : NULL;
	char *text;

	/* The program would take it for an option. */
	if (value && !prefix && value[0] == '-' && parameter->type == COMMAND_STRING)
		return errmsg_set(err, -EINVAL, "%s cannot begin with '-'", parameter->name);
	if (!parameter)
		text = strdup(word);
	else if (asprintf(&text, "%.*s%s", (int)prefix, word, value) < 0)
		text = NULL;
	return command_words_add(words, text);
}

int command_line(const struct job_command *command, const struct json_text *values,
	struct command_words *ret_words, struct errmsg *err)
{
	static const struct json_text none = {"{}", 2, false};
	struct command_words words = {{0}};
	struct values given = {{0}};
	int r = take_values(command, values ? values : &none, &given, err);

	if (r == 0)
		r = set_defaults(command, &given, err);
	for (size_t i = 0; r == 0 && i < command->argv.list.count; i++)
		r = add_word(command, command->argv.list.items[i], &given, &words, err);
	for (size_t i = 0; i < command->parameters.count; i++)
		free(given.texts[i]);
	if (r < 0)
		command_words_done(&words);
	else
		*ret_words = words;
	return r;
}

/* ---- the list ---- */

static void write_bound(struct json_writer *json, const char *key, bool is_there, double value)
{
	json_key(json, key);
	if (is_there)
		json_double(json, value, 15);
	else
		json_null(json);
}

static void write_default(struct json_writer *json, const struct command_parameter *parameter)
{
	bool is_number = parameter->type == COMMAND_INTEGER || parameter->type == COMMAND_NUMBER;

	json_key(json, "default");
	if (!parameter->initial)
		json_null(json);
	else if (is_number)
		json_double(json, strtod(parameter->initial, NULL), 15);
	else
		json_string(json, parameter->initial);
}

static void write_parameter(struct json_writer *json, const struct command_parameter *parameter)
{
	json_begin_object(json);
	json_member_text(json, "name", parameter->name);
	json_member_text(json, "type", command_type_names[parameter->type]);
	write_default(json, parameter);
	json_key(json, "choices");
	json_begin_array(json);
	array_foreach (&parameter->choices.list, choice)
		json_string(json, *choice);
	json_end_array(json);
	write_bound(json, "minimum", parameter->has_minimum, parameter->minimum);
	write_bound(json, "maximum", parameter->has_maximum, parameter->maximum);
	json_end_object(json);
}

void commands_write(const struct job_commands *commands, struct json_writer *json)
{
	json_begin_object(json);
	json_key(json, "commands");
	json_begin_array(json);
	for (size_t i = 0; commands && i < commands->items.count; i++) {
		const struct job_command *command = &commands->items.items[i];

		json_begin_object(json);
		json_member_text(json, "name", command->name);
		json_member_text(json, "description", command->description);
		json_key(json, "parameters");
		json_begin_array(json);
		array_foreach (&command->parameters, parameter)
			write_parameter(json, parameter);
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}
