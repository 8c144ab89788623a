/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "cli/default_captures.h"
#include "cli/suggest.h"

/* What was typed is shown cut to this many bytes. */
#define SHOWN_MAX 60

struct scan {
	const struct command *command;
	char **words;
	int next;   /* index of the next word to read */
	int count;  /* positional arguments so far */
	bool store; /* second pass: the line is right, keep values and arguments */
	bool wants_help, wants_brief_help;
	struct errmsg *err;
};

static const struct option *end_of(const struct option *option)
{
	while (option && option->long_name)
		option++;
	return option;
}

static const struct option *find_long(const struct scan *scan, const char *name, size_t length)
{
	const struct option *options = scan->command->options;

	for (const struct option *option = options; option < end_of(options); option++) {
		if (strlen(option->long_name) == length &&
			memcmp(option->long_name, name, length) == 0)
			return option;
	}
	return NULL;
}

static const struct option *find_short(const struct scan *scan, char name)
{
	const struct option *options = scan->command->options;

	for (const struct option *option = options; option < end_of(options); option++) {
		if (option->short_name && option->short_name == name)
			return option;
	}
	return NULL;
}

static int unknown_long(const struct scan *scan, const char *name, size_t length)
{
	const struct option *options = scan->command->options;
	char typed[SHOWN_MAX + 1];
	struct suggestion suggestion = {.word = typed};

	snprintf(typed, sizeof(typed), "%.*s", (int)MIN(length, (size_t)SHOWN_MAX), name);
	for (const struct option *option = options; option < end_of(options); option++)
		suggestion_offer(&suggestion, option->long_name);
	suggestion_offer(&suggestion, "help");
	if (suggestion.best)
		return errmsg_set(scan->err, -EINVAL,
			"sonde %s has no option '--%s'; did you mean --%s?", scan->command->name,
			typed, suggestion.best);
	return errmsg_set(scan->err, -EINVAL,
		"sonde %s has no option '--%s'; 'sonde %s --help' lists them", scan->command->name,
		typed, scan->command->name);
}

static int unknown_short(const struct scan *scan, char name, const char *word)
{
	if (name < '!' || name > '~')
		return errmsg_set(scan->err, -EINVAL,
			"'%.*s' is not an option of sonde %s; 'sonde %s --help' lists them",
			SHOWN_MAX, word, scan->command->name, scan->command->name);
	return errmsg_set(scan->err, -EINVAL,
		"sonde %s has no option '-%c'; 'sonde %s --help' lists them", scan->command->name,
		name, scan->command->name);
}

bool option_default(const struct option *option, struct strbuf *text)
{
	const char *string;
	uint64_t number;

	switch (option->type) {
	case OPTION_U64:
		number = *(const uint64_t *)option->value;
		if (number == 0 || number == UINT64_MAX)
			return false;
		strbuf_addf(text, "%" PRIu64, number);
		return true;
	case OPTION_DOUBLE:
		if (*(const double *)option->value == 0 || isnan(*(const double *)option->value))
			return false;
		strbuf_addf(text, "%g", *(const double *)option->value);
		return true;
	case OPTION_STRING:
	case OPTION_CHOICE:
		string = *(const char *const *)option->value;
		if (!string || !*string)
			return false;
		strbuf_add(text, string);
		return true;
	case OPTION_FLAG:
	case OPTION_STRINGS:
		return false;
	}
	return false;
}

static bool has_limits(const struct option *option)
{
	return option->minimum != 0 || option->maximum != 0;
}

static bool within_limits(const struct option *option, double value)
{
	return !has_limits(option) || (value >= option->minimum && value <= option->maximum);
}

static bool is_percentage(const struct option *option)
{
	return option->type == OPTION_DOUBLE && strcmp(option->argument, "PERCENT") == 0;
}

/* As an example, where there is no default. */
static double likely_number(const struct option *option)
{
	double usual = is_percentage(option) ? 5 : 1;

	return has_limits(option) ? MAX(option->minimum, usual) : usual;
}

static int bad_number(
	const struct scan *scan, const struct option *option, const char *name, const char *text)
{
	const char *kind = option->type == OPTION_U64 ? "whole number"
			   : is_percentage(option)    ? "percentage"
						      : "number";
	_cleanup_strbuf_ struct strbuf range = {0}, example = {0}, hint = {0};

	if (has_limits(option))
		strbuf_addf(&range, " from %.15g to %.15g", option->minimum, option->maximum);
	if (!option_default(option, &example))
		strbuf_addf(&example, "%.15g", likely_number(option));
	strbuf_addf(&hint, "; try %s %s", name, strbuf_cstr(&example));
	if (is_percentage(option))
		strbuf_addf(&hint, " or %s %s%%", name, strbuf_cstr(&example));
	return errmsg_set(scan->err, -EINVAL, "%s takes a %s%s, not '%.*s'%s", name, kind,
		strbuf_cstr(&range), SHOWN_MAX, text, strbuf_cstr(&hint));
}

/* Digits only: no sign, no space, no unit, nothing beyond 64 bits. */
static bool read_u64(const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return false;
	}
	*ret_value = value;
	return true;
}

/* A finite decimal number in C notation whatever the locale; strtod alone would take " 0x1p3" and
 * "nan". */
static bool read_double(const char *text, double *ret_value)
{
	locale_t c_locale;
	double value;
	char *end;

	if (!*text || text[strspn(text, "+-.0123456789eE")] != '\0')
		return false;
	c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	if (!c_locale)
		return false;
	value = strtod_l(text, &end, c_locale);
	freelocale(c_locale);
	if (*end || end == text || !isfinite(value))
		return false;
	*ret_value = value;
	return true;
}

static int set_u64(
	const struct scan *scan, const struct option *option, const char *name, const char *text)
{
	uint64_t value;

	if (!read_u64(text, &value) || !within_limits(option, (double)value))
		return bad_number(scan, option, name, text);
	if (scan->store)
		*(uint64_t *)option->value = value;
	return 0;
}

/* The value, which a percentage may end with its sign: "5%". */
static bool read_option_double(const struct option *option, const char *text, double *ret_value)
{
	size_t length = strlen(text);
	char number[64];

	if (!is_percentage(option) || !length || text[length - 1] != '%')
		return read_double(text, ret_value);
	if (length > sizeof(number))
		return false;
	memcpy(number, text, length - 1);
	number[length - 1] = '\0';
	return read_double(number, ret_value);
}

static int set_double(
	const struct scan *scan, const struct option *option, const char *name, const char *text)
{
	double value;

	if (!read_option_double(option, text, &value) || !within_limits(option, value))
		return bad_number(scan, option, name, text);
	if (scan->store)
		*(double *)option->value = value;
	return 0;
}

static int set_choice(
	const struct scan *scan, const struct option *option, const char *name, const char *text)
{
	struct suggestion suggestion = {.word = text};
	_cleanup_strbuf_ struct strbuf list = {0};

	for (const char *const *choice = option_choices(option); *choice; choice++) {
		if (strcmp(*choice, text) == 0) {
			if (scan->store)
				*(const char **)option->value = *choice;
			return 0;
		}
		suggestion_offer(&suggestion, *choice);
		strbuf_addf(&list, "%s%s", list.length ? ", " : "", *choice);
	}
	if (suggestion.best)
		return errmsg_set(scan->err, -EINVAL,
			"%s takes one of %s, not '%.*s'; did you mean %s?", name,
			strbuf_cstr(&list), SHOWN_MAX, text, suggestion.best);
	return errmsg_set(scan->err, -EINVAL, "%s takes one of %s, not '%.*s'", name,
		strbuf_cstr(&list), SHOWN_MAX, text);
}

static int add_string(
	const struct scan *scan, const struct option *option, const char *name, const char *text)
{
	struct option_strings *strings = option->value;

	if (!scan->store)
		return 0;
	if (strings->count == ARRAY_SIZE(strings->values))
		return errmsg_set(scan->err, -EINVAL,
			"%s was given more than %zu times; give it fewer times", name,
			ARRAY_SIZE(strings->values));
	strings->values[strings->count++] = text;
	return 0;
}

static int set_value(
	const struct scan *scan, const struct option *option, const char *name, const char *text)
{
	switch (option->type) {
	case OPTION_FLAG:
		if (scan->store)
			*(bool *)option->value = true;
		return 0;
	case OPTION_STRING:
		if (scan->store)
			*(const char **)option->value = text;
		return 0;
	case OPTION_U64:
		return set_u64(scan, option, name, text);
	case OPTION_DOUBLE:
		return set_double(scan, option, name, text);
	case OPTION_CHOICE:
		return set_choice(scan, option, name, text);
	case OPTION_STRINGS:
		return add_string(scan, option, name, text);
	}
	return -EINVAL;
}

/* `attached` is the value in the same word; without one the next word is taken. */
static int take_value(
	struct scan *scan, const struct option *option, const char *name, const char *attached)
{
	const char *text = attached;

	if (!text)
		text = scan->words[scan->next];
	if (!text)
		return errmsg_set(scan->err, -EINVAL, "%s needs a value: write %s %s", name, name,
			option->argument);
	if (!attached)
		scan->next++;
	return set_value(scan, option, name, text);
}

static int parse_long(struct scan *scan, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word) : strlen(word);
	const struct option *option = find_long(scan, word + 2, length - 2);
	char name[SHOWN_MAX + 1];

	if (!option && strcmp(word, "--help") == 0) {
		scan->wants_help = true;
		return 0;
	}
	if (!option)
		return unknown_long(scan, word + 2, length - 2);
	snprintf(name, sizeof(name), "--%s", option->long_name);
	if (option->type != OPTION_FLAG)
		return take_value(scan, option, name, equals ? equals + 1 : NULL);
	if (equals)
		return errmsg_set(scan->err, -EINVAL,
			"%s takes no value, but '%.*s' was given; write %s alone", name, SHOWN_MAX,
			word, name);
	return set_value(scan, option, name, NULL);
}

static int parse_cluster(struct scan *scan, const char *word)
{
	size_t length = strcspn(word + 1, "=");
	const struct option *meant = length > 2 ? find_long(scan, word + 1, length) : NULL;

	/* One dash too few: -output would otherwise write a file named "utput". */
	if (meant)
		return errmsg_set(scan->err, -EINVAL,
			"sonde %s has no option '%.*s'; did you mean --%s?", scan->command->name,
			SHOWN_MAX, word, meant->long_name);
	for (const char *letter = word + 1; *letter; letter++) {
		const struct option *option = find_short(scan, *letter);
		char name[] = {'-', *letter, '\0'};
		int result;

		if (!option && *letter == 'h') {
			scan->wants_help = scan->wants_brief_help = true;
			continue;
		}
		if (!option)
			return unknown_short(scan, *letter, word);
		if (option->type != OPTION_FLAG)
			return take_value(scan, option, name, letter[1] ? letter + 1 : NULL);
		result = set_value(scan, option, name, NULL);
		if (result < 0)
			return result;
	}
	return 0;
}

static void keep_argument(struct scan *scan, char *word)
{
	/* The front is never ahead of the word that is read, so nothing unread is overwritten. */
	if (scan->store)
		scan->words[scan->count] = word;
	scan->count++;
}

static void keep_rest(struct scan *scan)
{
	while (scan->words[scan->next])
		keep_argument(scan, scan->words[scan->next++]);
}

static int scan_words(struct scan *scan)
{
	while (scan->words[scan->next]) {
		char *word = scan->words[scan->next++];
		int result = 0;

		if (strcmp(word, "--") == 0) {
			keep_rest(scan);
			return 0;
		}
		if (word[0] != '-' || word[1] == '\0') {
			keep_argument(scan, word);
			if (!scan->command->stops_at_first_argument)
				continue;
			keep_rest(scan);
			return 0;
		}
		result = word[1] == '-' ? parse_long(scan, word) : parse_cluster(scan, word);
		if (result < 0)
			return result;
	}
	return 0;
}

static bool has_default(const struct command *command)
{
	int count = 0;

	if (command->default_argument)
		default_captures(command->default_argument, &count);
	return count > 0;
}

static int check_count(const struct scan *scan)
{
	const struct command *command = scan->command;
	const char *usage = command->usage ? command->usage : "";

	if (scan->count < command->minimum_arguments)
		return errmsg_set(scan->err, -EINVAL,
			"sonde %s needs %d argument%s, but got %d; usage: sonde %s %s",
			command->name, command->minimum_arguments,
			command->minimum_arguments == 1 ? "" : "s", scan->count, command->name,
			usage);
	if (command->maximum_arguments >= 0 && scan->count > command->maximum_arguments)
		return errmsg_set(scan->err, -EINVAL,
			"sonde %s takes at most %d argument%s, but got %d; usage: sonde %s %s",
			command->name, command->maximum_arguments,
			command->maximum_arguments == 1 ? "" : "s", scan->count, command->name,
			usage);
	return 0;
}

int options_parse(const struct command *command, char **words,
	struct parsed_arguments *ret_arguments, struct errmsg *err)
{
	struct scan scan = {.command = command, .words = words, .err = err};
	int result = scan_words(&scan);

	if (result == 0 && !scan.wants_help && !(scan.count == 0 && has_default(command)))
		result = check_count(&scan);
	if (result < 0)
		return result;
	if (scan.wants_help) {
		*ret_arguments = (struct parsed_arguments){.values = words,
			.wants_help = true,
			.wants_brief_help = scan.wants_brief_help};
		return 0;
	}
	scan = (struct scan){.command = command, .words = words, .err = err, .store = true};
	result = scan_words(&scan);
	if (result < 0)
		return result;
	if (scan.count == 0 && has_default(command)) {
		*ret_arguments = (struct parsed_arguments){0};
		ret_arguments->values =
			default_captures(command->default_argument, &ret_arguments->count);
		return 0;
	}
	words[scan.count] = NULL;
	*ret_arguments = (struct parsed_arguments){.count = scan.count, .values = words};
	return 0;
}
