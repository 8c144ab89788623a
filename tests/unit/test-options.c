/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what the option tables accept, what they refuse and with which words; help and
 * suggestions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* the command line has one too */

#include "base/text.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/suggest.h"

static struct {
	bool all, verbose;
	uint64_t frequency, pid, any;
	double seconds, share;
	const char *output, *format;
	struct option_strings filters;
} given;

static const char *const formats[] = {"folded", "flamegraph", "speedscope", NULL};

static const struct option options[] = {
	{.short_name = 'a',
		.long_name = "all",
		.type = OPTION_FLAG,
		.help = "All.",
		.value = &given.all},
	{.short_name = 'v', .long_name = "verbose", .type = OPTION_FLAG, .value = &given.verbose},
	{.short_name = 'F',
		.long_name = "frequency",
		.type = OPTION_U64,
		.argument = "HZ",
		.help = "Samples a second.",
		.value = &given.frequency,
		.minimum = 1,
		.maximum = 10000,
		.group = "Sampling"},
	{.short_name = 'p',
		.long_name = "pid",
		.type = OPTION_U64,
		.argument = "PID",
		.value = &given.pid,
		.minimum = 1,
		.maximum = 4194304,
		.group = "Targets"},
	{.long_name = "any", .type = OPTION_U64, .argument = "N", .value = &given.any},
	{.short_name = 'd',
		.long_name = "seconds",
		.type = OPTION_DOUBLE,
		.argument = "SECONDS",
		.value = &given.seconds,
		.minimum = 0.001,
		.maximum = 1e6,
		.group = "Sampling"},
	{.long_name = "share",
		.type = OPTION_DOUBLE,
		.argument = "PERCENT",
		.value = &given.share,
		.minimum = 0,
		.maximum = 100},
	{.short_name = 'o',
		.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.value = &given.output},
	{.short_name = 'f',
		.long_name = "format",
		.type = OPTION_CHOICE,
		.argument = "FORMAT",
		.help = "What to write.",
		.value = &given.format,
		.choices = formats},
	{.long_name = "filter",
		.type = OPTION_STRINGS,
		.argument = "TEXT",
		.value = &given.filters},
	{0},
};

static int run_nothing(int count, char **arguments)
{
	return 0;
}

static const struct command plain = {
	.name = "plain",
	.summary = "a command for tests",
	.usage = "[options] FILE",
	.description = "First paragraph that is long enough to be broken over two lines at a width "
		       "of forty.\n\n"
		       "Second.\n  kept as it is",
	.examples = "plain x\n    does x",
	.options = options,
	.minimum_arguments = 0,
	.maximum_arguments = 2,
	.run = run_nothing,
};

static const struct command runner = {
	.name = "runner",
	.summary = "runs something",
	.usage = "-- COMMAND",
	.options = options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.stops_at_first_argument = true,
	.run = run_nothing,
};

static const struct command secret = {.name = "secret", .summary = "hidden", .hidden = true};

const struct command *const commands[] = {&plain, &runner, &secret, NULL};

static struct parsed_arguments parsed;
static struct errmsg err;

#define PARSE(command, ...)                                                                        \
	({                                                                                         \
		static char *words_[32];                                                           \
		char *given_[] = {__VA_ARGS__ __VA_OPT__(, ) NULL};                                \
		memcpy(words_, given_, sizeof(given_));                                            \
		options_parse(command, words_, &parsed, &err);                                     \
	})

static int reset(void **state)
{
	memset(&given, 0, sizeof(given));
	given.frequency = 99;
	memset(&parsed, 0, sizeof(parsed));
	memset(&err, 0, sizeof(err));
	return 0;
}

static void assert_says(const char *part)
{
	if (!strstr(err.text, part))
		print_error("'%s' is not in '%s'\n", part, err.text);
	assert_non_null(strstr(err.text, part));
	assert_null(strchr(err.text, '\n'));
}

#define assert_refused(part, ...)                                                                  \
	do {                                                                                       \
		assert_int_equal(PARSE(&plain, __VA_ARGS__), -EINVAL);                             \
		assert_says(part);                                                                 \
	} while (0)

static void takes_every_form(void **state)
{
	assert_int_equal(PARSE(&plain, "-F", "100", "-p5", "--seconds=2.5", "--output", "x y", "in",
				 "-av", "--format=folded", "--filter", "a", "--filter=b"),
		0);
	assert_int_equal(given.frequency, 100);
	assert_int_equal(given.pid, 5);
	assert_true(given.seconds == 2.5);
	assert_string_equal(given.output, "x y");
	assert_true(given.all && given.verbose);
	assert_string_equal(given.format, "folded");
	assert_int_equal(given.filters.count, 2);
	assert_string_equal(given.filters.values[1], "b");
	assert_int_equal(parsed.count, 1);
	assert_string_equal(parsed.values[0], "in");
	assert_null(parsed.values[1]);
}

static void cluster_ends_with_value(void **state)
{
	assert_int_equal(PARSE(&plain, "-avF250"), 0);
	assert_int_equal(given.frequency, 250);
	assert_int_equal(PARSE(&plain, "-avo", "file"), 0);
	assert_string_equal(given.output, "file");
}

static void double_dash_ends_options(void **state)
{
	assert_int_equal(PARSE(&plain, "-a", "--", "-v", "--frequency"), 0);
	assert_false(given.verbose);
	assert_int_equal(parsed.count, 2);
	assert_string_equal(parsed.values[0], "-v");
	assert_string_equal(parsed.values[1], "--frequency");
	assert_null(parsed.values[2]);
}

static void single_dash_is_an_argument(void **state)
{
	assert_int_equal(PARSE(&plain, "-", "-o", "-"), 0);
	assert_string_equal(parsed.values[0], "-");
	assert_string_equal(given.output, "-");
}

static void empty_words_are_arguments_and_values(void **state)
{
	assert_int_equal(PARSE(&plain, "", "--output="), 0);
	assert_int_equal(parsed.count, 1);
	assert_string_equal(parsed.values[0], "");
	assert_string_equal(given.output, "");
}

static void a_run_command_keeps_its_options(void **state)
{
	assert_int_equal(PARSE(&runner, "-F", "50", "python", "-F", "--help", "--", "x"), 0);
	assert_int_equal(given.frequency, 50);
	assert_false(parsed.wants_help);
	assert_int_equal(parsed.count, 5);
	assert_string_equal(parsed.values[0], "python");
	assert_string_equal(parsed.values[2], "--help");
	assert_string_equal(parsed.values[3], "--");
	assert_int_equal(PARSE(&runner, "-a", "--", "--odd", "-v"), 0);
	assert_int_equal(parsed.count, 2);
	assert_string_equal(parsed.values[0], "--odd");
}

static void help_wins_and_stores_nothing(void **state)
{
	assert_int_equal(PARSE(&plain, "-F", "100", "a", "b", "c", "--help"), 0);
	assert_true(parsed.wants_help);
	assert_int_equal(given.frequency, 99);
	assert_int_equal(PARSE(&plain, "-ah"), 0);
	assert_true(parsed.wants_help);
	assert_false(given.all);
}

static void nothing_is_stored_when_a_later_word_is_wrong(void **state)
{
	assert_refused("no option", "-F", "100", "--output", "x", "--nonsense");
	assert_int_equal(given.frequency, 99);
	assert_null(given.output);
}

static void numbers_are_strict(void **state)
{
	static char *const wrong[] = {"", " 5", "5 ", "-5", "+5", "5k", "0x10", "1e3", "5.0", "0",
		"10001", "18446744073709551616", "99999999999999999999999999", "nan", "٣"};

	for (size_t index = 0; index < ARRAY_SIZE(wrong); index++) {
		assert_refused("--frequency takes a whole number from 1 to 10000, not '",
			"--frequency", wrong[index]);
		assert_says("; try --frequency 99");
	}
	assert_refused("-F takes", "-F=50");
	assert_int_equal(PARSE(&plain, "--frequency", "10000"), 0);
	assert_int_equal(PARSE(&plain, "--frequency", "0000001"), 0);
	assert_int_equal(given.frequency, 1);
}

static void no_limits_means_all_of_64_bits(void **state)
{
	assert_int_equal(PARSE(&plain, "--any", "18446744073709551615"), 0);
	assert_true(given.any == UINT64_MAX);
	assert_int_equal(PARSE(&plain, "--any=0"), 0);
	assert_refused("--any takes a whole number, not", "--any", "18446744073709551616");
}

static void doubles_are_strict(void **state)
{
	static char *const wrong[] = {"", " 1", "1s", "nan", "inf", "infinity", "0x1p3", "1e999",
		"-1", "0", "1e7", "1,5", ".", "e", "1e", "--", "1.5.2"};

	for (size_t index = 0; index < ARRAY_SIZE(wrong); index++)
		assert_refused(
			"-d takes a number from 0.001 to 1000000, not '", "-d", wrong[index]);
	assert_int_equal(PARSE(&plain, "-d", "1e-2"), 0);
	assert_true(given.seconds == 0.01);
}

static void percentages_may_have_their_sign(void **state)
{
	static char *const wrong[] = {"%", "5%%", "5 %", "101%", "-1%", "x%"};

	assert_int_equal(PARSE(&plain, "--share", "2.5%"), 0);
	assert_true(given.share == 2.5);
	assert_int_equal(PARSE(&plain, "--share=7"), 0);
	assert_true(given.share == 7);
	for (size_t index = 0; index < ARRAY_SIZE(wrong); index++)
		assert_refused(
			"--share takes a percentage from 0 to 100, not '", "--share", wrong[index]);
	assert_refused("not 'x'; try --share 7 or --share 7%", "--share", "x");
	assert_refused("--seconds takes a number", "--seconds", "5%");
}

static void choices_are_suggested(void **state)
{
	assert_refused(
		"one of folded, flamegraph, speedscope, not 'flamgraph'; did you mean flamegraph?",
		"-f", "flamgraph");
	assert_refused("not 'xml'", "--format=xml");
	assert_int_equal(PARSE(&plain, "-f", "speedscope"), 0);
	assert_ptr_equal(given.format, formats[2]);
}

static void slips_are_named(void **state)
{
	assert_refused("no option '--frequncy'; did you mean --frequency?", "--frequncy", "5");
	assert_refused("did you mean --frequency?", "--freq=5");
	assert_refused("did you mean --output?", "-output");
	assert_refused("did you mean --help?", "--hlep");
	assert_refused("has no option '--zzz'; 'sonde plain --help' lists them", "--zzz");
	assert_refused("has no option '-x'", "-avx");
	assert_refused("is not an option of", "-\x01");
	assert_refused("--all takes no value", "--all=yes");
	assert_refused("--output needs a value: write --output FILE", "--output");
	assert_refused("-o needs a value: write -o FILE", "-ao");
	assert_refused("has no option '---'", "---");
	assert_refused("has no option '--'", "--=x");
}

static void arguments_are_counted(void **state)
{
	assert_refused("takes at most 2 arguments, but got 3; usage: sonde plain [options] FILE",
		"a", "b", "c");
	assert_int_equal(PARSE(&runner), -EINVAL);
	assert_says("needs 1 argument, but got 0; usage: sonde runner -- COMMAND");
}

static void hostile_lengths_are_cut(void **state)
{
	static char huge[200000];

	memset(huge, 'A', sizeof(huge) - 1);
	huge[0] = huge[1] = '-';
	assert_refused("no option '--AAAA", huge);
	assert_true(strlen(err.text) < 300);
	assert_refused("-F takes", "-F", huge);
	assert_true(strlen(err.text) < 300);
	huge[1] = 'A';
	assert_refused("no option '-A'", huge);
	assert_refused("%n%s%n", "--%n%s%n");
	assert_refused("\xff\xfe", "--\xff\xfe");
}

static void too_many_strings_are_refused(void **state)
{
	char *words[2 * 65 + 1] = {0};

	for (size_t index = 0; index < 65; index++) {
		words[2 * index] = "--filter";
		words[2 * index + 1] = "x";
	}
	assert_int_equal(options_parse(&plain, words, &parsed, &err), -EINVAL);
	assert_says("--filter was given more than 64 times");
}

static void suggestions_are_near(void **state)
{
	struct suggestion swapped = {.word = "rnuner"}, far = {.word = "xyz"}, one = {.word = "a"};
	char long_word[100] = {0};
	struct suggestion too_long = {.word = long_word};

	memset(long_word, 'r', sizeof(long_word) - 1);
	suggestion_offer(&swapped, "plain");
	suggestion_offer(&swapped, "runner");
	assert_string_equal(swapped.best, "runner");
	suggestion_offer(&far, "runner");
	assert_null(far.best);
	suggestion_offer(&one, "b");
	assert_null(one.best);
	suggestion_offer(&too_long, "runner");
	assert_null(too_long.best);
}

static void unknown_commands_get_advice(void **state)
{
	command_unknown("runer", &err);
	assert_says("did you mean 'sonde runner'?");
	command_unknown("/bin/sh", &err);
	assert_says("to profile it: sonde record -- /bin/sh");
	command_unknown("secre", &err);
	assert_says("'sonde --help' lists them");
}

static void help_shows_groups_defaults_and_choices(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	const char *help, *sampling, *targets;

	help_command_text(&text, &plain, 60);
	help = strbuf_cstr(&text);
	sampling = strstr(help, "\nSampling:\n");
	targets = strstr(help, "\nTargets:\n");
	assert_non_null(sampling);
	assert_non_null(targets);
	assert_true(strstr(help, "\nOptions:\n") < sampling && sampling < targets);
	assert_non_null(strstr(sampling, "-F, --frequency HZ"));
	assert_true(strstr(sampling, "--seconds") < targets);
	assert_non_null(strstr(help, "Samples a second. (default 99)"));
	assert_non_null(strstr(help, "-h, --help"));
	assert_non_null(strstr(help, "\n  kept as it is\n"));
	assert_non_null(strstr(help, "  plain x\n      does x\n"));
	for (const char *line = help; *line; line += strcspn(line, "\n") + 1)
		assert_true(text_columns(line, strcspn(line, "\n")) <= 60);
}

static void overview_hides_hidden_commands(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	help_overview_text(&text, 80);
	assert_non_null(strstr(strbuf_cstr(&text), "  runner      runs something\n"));
	assert_null(strstr(strbuf_cstr(&text), "secret"));
	assert_ptr_equal(command_find("secret"), &secret);
	assert_null(command_find("runne"));
}

static void wrapping_counts_characters(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	text_wrap(&text, "ääää öööö  üüüü", 0, 2, 9);
	assert_string_equal(strbuf_cstr(&text), "ääää öööö\n  üüüü\n");
	strbuf_clear(&text);
	text_wrap(&text, "漢字 漢字 e\u0301e", 0, 0, 9);
	assert_string_equal(strbuf_cstr(&text), "漢字 漢字\ne\u0301e\n");
	assert_int_equal(text_columns("漢字🚀", strlen("漢字🚀")), 6);
	assert_int_equal(text_columns("e\u0301", strlen("e\u0301")), 1);
	assert_int_equal(text_columns("\xe6\xbc", 2), 1); /* cut off, and no character */
	strbuf_clear(&text);
	text_wrap(&text, "averyveryverylongword b", 0, 0, 5);
	assert_string_equal(strbuf_cstr(&text), "averyveryverylongword\nb\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(takes_every_form, reset),
		cmocka_unit_test_setup(cluster_ends_with_value, reset),
		cmocka_unit_test_setup(double_dash_ends_options, reset),
		cmocka_unit_test_setup(single_dash_is_an_argument, reset),
		cmocka_unit_test_setup(empty_words_are_arguments_and_values, reset),
		cmocka_unit_test_setup(a_run_command_keeps_its_options, reset),
		cmocka_unit_test_setup(help_wins_and_stores_nothing, reset),
		cmocka_unit_test_setup(nothing_is_stored_when_a_later_word_is_wrong, reset),
		cmocka_unit_test_setup(numbers_are_strict, reset),
		cmocka_unit_test_setup(no_limits_means_all_of_64_bits, reset),
		cmocka_unit_test_setup(doubles_are_strict, reset),
		cmocka_unit_test_setup(percentages_may_have_their_sign, reset),
		cmocka_unit_test_setup(choices_are_suggested, reset),
		cmocka_unit_test_setup(slips_are_named, reset),
		cmocka_unit_test_setup(arguments_are_counted, reset),
		cmocka_unit_test_setup(hostile_lengths_are_cut, reset),
		cmocka_unit_test_setup(too_many_strings_are_refused, reset),
		cmocka_unit_test_setup(suggestions_are_near, reset),
		cmocka_unit_test_setup(unknown_commands_get_advice, reset),
		cmocka_unit_test_setup(help_shows_groups_defaults_and_choices, reset),
		cmocka_unit_test_setup(overview_hides_hidden_commands, reset),
		cmocka_unit_test_setup(wrapping_counts_characters, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
