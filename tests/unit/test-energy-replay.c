/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of energy in a file: what they give, and every fault with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sources/energy/replay.h"

#define HEADER                                                                                     \
	"{\"sonde_energy\":1,\"domains\":[{\"name\":\"package-0\",\"part\":\"cpu\","               \
	"\"parent\":null,"                                                                         \
	"\"quality\":\"counter\",\"period_ms\":10,\"idle_w\":20.5,\"relative_error\":0.05,"        \
	"\"limit_w\":125,\"cpus\":\"0-7,16\"},"                                                    \
	"{\"name\":\"core-0\",\"part\":\"cores\",\"parent\":\"package-0\",\"quality\":"            \
	"\"averaged\"}]}\n"

static struct energy_replay *parse(const char *text)
{
	struct energy_replay *replay = NULL;
	struct errmsg err = {{0}};

	if (energy_replay_parse(&replay, text, strlen(text), "run.jsonl", &err) < 0)
		fail_msg("%s", err.text);
	return replay;
}

static void assert_refused(const char *text, const char *reason)
{
	struct energy_replay *replay = NULL;
	struct errmsg err = {{0}};

	if (energy_replay_parse(&replay, text, strlen(text), "run.jsonl", &err) == 0)
		fail_msg("taken: %s", text);
	assert_null(replay);
	if (!strstr(err.text, reason))
		fail_msg("\"%s\" is not in \"%s\"", reason, err.text);
}

static void test_counters_and_power(void **state _unused_)
{
	struct energy_replay *replay = parse(HEADER
		"{\"t_ms\":0,\"domain\":\"package-0\",\"energy_j\":100}\n"
		"{\"t_ms\":0.5,\"domain\":\"core-0\",\"power_w\":10}\r\n"
		"\n"
		"{\"t_ms\":100,\"domain\":\"package-0\",\"energy_j\":103.5,\"temperature_c\":61.5,"
		"\"clock_mhz\":3400,\"new\":{\"a\":[1]}}\n"
		"{\"t_ms\":100.5,\"domain\":\"core-0\",\"power_w\":30}");
	const struct wire_energy_interval *intervals = replay->intervals.items;

	assert_int_equal(replay->domain_count, 2);
	assert_string_equal(replay->domains[0].name, "package-0");
	assert_true(replay->domains[0].is_replayed && replay->domains[1].is_replayed);
	assert_int_equal(replay->domains[0].quality, WIRE_ENERGY_COUNTER);
	assert_true(replay->domains[0].idle_w == 20.5);
	assert_true(isnan(replay->domains[1].idle_w));
	assert_true(replay->domains[0].limit_w == 125 && replay->domains[1].limit_w == 0);
	assert_string_equal(replay->domains[0].cpus, "0-7,16");
	assert_null(replay->domains[1].cpus);
	assert_int_equal(replay->domains[0].period_ns, 10000000);
	assert_int_equal(replay->domains[1].parent, 1);
	assert_int_equal(replay->intervals.count, 2);
	assert_true(intervals[0].energy_nj == 3500000000);
	assert_int_equal(intervals[0].domain, 1);
	assert_int_equal(intervals[0].end_ns, 100000000);
	assert_true(intervals[1].energy_nj == 2000000000); /* 20 W for 0.1 s */
	assert_int_equal(replay->states.count, 1);
	assert_int_equal(replay->states.items[0].temperature_mc, 61500);
	assert_int_equal(replay->states.items[0].clock_mhz, 3400);
	assert_string_equal(replay->note.text, "");
	energy_replay_free(replay);
}

static void test_null_and_going_back_are_gaps(void **state _unused_)
{
	struct energy_replay *replay =
		parse(HEADER "{\"t_ms\":0,\"domain\":\"package-0\",\"energy_j\":100}\n"
			     "{\"t_ms\":1,\"domain\":\"package-0\",\"energy_j\":null}\n"
			     "{\"t_ms\":2,\"domain\":\"package-0\",\"energy_j\":101}\n"
			     "{\"t_ms\":3,\"domain\":\"package-0\",\"energy_j\":102}\n"
			     "{\"t_ms\":4,\"domain\":\"package-0\",\"energy_j\":1}\n");
	static const enum wire_energy_gap gaps[] = {WIRE_ENERGY_READ_FAILED,
		WIRE_ENERGY_READ_FAILED, WIRE_ENERGY_NO_GAP, WIRE_ENERGY_WENT_BACK};

	assert_int_equal(replay->intervals.count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(replay->intervals.items[i].gap, gaps[i]);
	assert_non_null(strstr(replay->note.text, "less than the previous one"));
	energy_replay_free(replay);
}

static void test_cut_off(void **state _unused_)
{
	struct energy_replay *replay =
		parse(HEADER "{\"t_ms\":0,\"domain\":\"package-0\",\"energy_j\":100}\n"
			     "{\"t_ms\":1,\"domain\":\"package-0\",\"energy_j\":101}\n"
			     "{\"t_ms\":2,\"domain\":\"packa");

	assert_int_equal(replay->intervals.count, 1);
	assert_non_null(strstr(replay->note.text, "cut off: its last line, 4"));
	energy_replay_free(replay);
	assert_refused("{\"sonde_energy\":1,\"domai", "line 1");
	assert_refused("", "line 1");
}

static void test_faults_have_their_line(void **state _unused_)
{
	assert_refused("{\"traceEvents\":[]}\n", "line 1: this is not a recording of energy");
	assert_refused("[1,2]\n", "line 1");
	assert_refused("{\"sonde_energy\":2,\"domains\":[]}\n", "use a newer sonde");
	assert_refused("{\"sonde_energy\":1,\"domains\":[]}\n", "no domains");
	assert_refused(HEADER "{\"t_ms\":0,\"domain\":\"gpu7\",\"energy_j\":1}\n",
		"run.jsonl, line 2: the first line has no domain gpu7");
	assert_refused(HEADER "{\"t_ms\":0,\"domain\":\"core-0\",\"power_w\":\"12\"}\n",
		"line 2: power_w is \"12\", not a number");
	assert_refused(HEADER "{\"t_ms\":0,\"domain\":\"core-0\",\"power_w\":nan}\n",
		"line 2: power_w is nan, not a number");
	assert_refused(HEADER "{\"t_ms\":0,\"domain\":\"core-0\",\"power_w\":1e999}\n", "line 2");
	assert_refused(HEADER "{\"t_ms\":0,\"domain\":\"core-0\",\"power_w\":-1}\n",
		"line 2: power_w is -1; it must be between 0 and");
	assert_refused(
		HEADER "{\"t_ms\":-5,\"domain\":\"core-0\",\"power_w\":1}\n", "line 2: t_ms");
	assert_refused(HEADER "{\"domain\":\"core-0\",\"power_w\":1}\n", "needs t_ms and domain");
	assert_refused(HEADER "{\"t_ms\":0,\"domain\":\"core-0\",\"power_w\":1,\"energy_j\":1}\n",
		"not both");
	assert_refused(HEADER "{\"t_ms\":0,\"domain\":\"core-0\",\"power_w\":1}\n"
			      "{\"t_ms\":1,\"domain\":\"core-0\",\"energy_j\":1}\n",
		"line 3: core-0 has energy_j in some lines");
	assert_refused(HEADER "nonsense\n{}\n", "line 2: this is not a JSON object");
}

static void test_unordered(void **state _unused_)
{
	assert_refused(HEADER "{\"t_ms\":30,\"domain\":\"core-0\",\"power_w\":1}\n"
			      "{\"t_ms\":20,\"domain\":\"core-0\",\"power_w\":1}\n",
		"line 3: t_ms of core-0 is 20 after 30: sort the lines");
	assert_refused(HEADER "{\"t_ms\":30,\"domain\":\"core-0\",\"power_w\":1}\n"
			      "{\"t_ms\":30,\"domain\":\"core-0\",\"power_w\":1}\n",
		"line 3: t_ms of core-0 is 30 after 30");
}

static void test_domains_that_cannot_be(void **state _unused_)
{
#define DOMAIN(text) "{\"sonde_energy\":1,\"domains\":[" text "]}\n"
	assert_refused(DOMAIN("{\"name\":\"a\",\"part\":\"cpu\"}"), "a name, a part and a quality");
	assert_refused(DOMAIN("{\"name\":\"a\",\"part\":\"toaster\",\"quality\":\"counter\"}"),
		"there is no part \"toaster\"");
	assert_refused(DOMAIN("{\"name\":\"a\",\"part\":\"cpu\",\"quality\":\"good\"}"),
		"there is no quality \"good\"");
	assert_refused(DOMAIN("{\"name\":\"a\",\"part\":\"cpu\",\"quality\":\"counter\","
			      "\"parent\":\"b\"},"
			      "{\"name\":\"b\",\"part\":\"cpu\",\"quality\":\"counter\"}"),
		"there is no domain b before");
	assert_refused(DOMAIN("{\"name\":\"a\",\"part\":\"cpu\",\"quality\":\"counter\"},"
			      "{\"name\":\"a\",\"part\":\"cpu\",\"quality\":\"counter\"}"),
		"two domains a");
	assert_refused(
		DOMAIN("{\"name\":\"a\\u001b[2J\",\"part\":\"cpu\",\"quality\":\"counter\"}"),
		"control characters");
	assert_refused(DOMAIN("{\"name\":\"a\",\"part\":\"cpu\",\"quality\":\"counter\","
			      "\"cpus\":\"0-3,2\"}"),
		"cpus of a is no list such as");
	assert_refused(DOMAIN("{\"name\":\"a\",\"part\":\"cpu\",\"quality\":\"counter\","
			      "\"limit_w\":-1}"),
		"limit_w is -1");
	assert_refused(DOMAIN("{\"name\":5,\"part\":\"cpu\",\"quality\":\"counter\"}"),
		"name is not text");
}

static void assert_no_model(const char *text, const char *reason)
{
	struct energy_replay *model = NULL;
	struct errmsg err = {{0}};

	if (energy_model_parse(&model, text, strlen(text), "model.json", &err) == 0)
		fail_msg("taken: %s", text);
	if (!strstr(err.text, reason))
		fail_msg("\"%s\" is not in \"%s\"", reason, err.text);
}

/* Of a model every figure is needed, its error first of all; and it is one line. */
static void test_model(void **state _unused_)
{
	static const char model_text[] =
		"{\"sonde_energy_model\":1,\"domains\":[{\"name\":\"package-0\",\"part\":\"cpu\","
		"\"idle_w\":12,\"busy_w\":6.5,\"relative_error\":0.3,\"quality\":\"counter\"}]}"
		"\n\n";
	struct energy_replay *model = NULL;
	struct errmsg err = {{0}};

	assert_int_equal(
		energy_model_parse(&model, model_text, strlen(model_text), "model.json", &err), 0);
	assert_int_equal(model->domain_count, 1);
	assert_int_equal(model->domains[0].quality, WIRE_ENERGY_ESTIMATED);
	assert_string_equal(model->domains[0].source, "model");
	assert_false(model->domains[0].is_replayed);
	assert_true(model->busy_w[0] == 6.5 && model->domains[0].idle_w == 12);
	energy_replay_free(model);
	assert_no_model("{\"sonde_energy\":1,\"domains\":[]}", "this is not a model of energy");
	assert_no_model("{\"sonde_energy_model\":1,\"domains\":[{\"name\":\"a\",\"part\":\"cpu\","
			"\"idle_w\":12,\"busy_w\":6.5}]}",
		"line 1: a needs idle_w, busy_w and relative_error");
	assert_no_model("{\"sonde_energy_model\":1,\"domains\":[{\"name\":\"a\",\"part\":\"cpu\","
			"\"idle_w\":-1}]}",
		"line 1: idle_w is -1; it must be between 0 and");
	assert_no_model("{\"sonde_energy_model\":2,\"domains\":[]}", "use a newer sonde");
	assert_no_model("{\"sonde_energy_model\":1,\"domains\":[{\"name\":\"a\",\"part\":\"cpu\","
			"\"idle_w\":1,\"busy_w\":1,\"relative_error\":1}]}\n{}",
		"line 2: a model is one line");
}

static void test_no_file(void **state _unused_)
{
	struct energy_replay *replay = NULL;
	struct errmsg err = {{0}};

	assert_true(energy_replay_open(&replay, "/nowhere/at/all.jsonl", &err) < 0);
	assert_non_null(strstr(err.text, "/nowhere/at/all.jsonl"));
	assert_true(energy_replay_open(&replay, "/dev/zero", &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_and_power),
		cmocka_unit_test(test_null_and_going_back_are_gaps),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_faults_have_their_line),
		cmocka_unit_test(test_unordered),
		cmocka_unit_test(test_domains_that_cannot_be),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
