/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of sources: one that was added by its steps, in a set and in a whole recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collect/session/session.h"
#include "sources/source_set.h"
#include "toy-source.h"

static const struct source *const toy_table[] = {&toy_source, NULL};

static char folder[64], path[96];

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/test-sources.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/capture", folder);
	return 0;
}

static int remove_folder(void **state)
{
	unlink(path);
	return rmdir(folder);
}

static int forget_calls(void **state)
{
	toy_script = (struct toy_script){0};
	return 0;
}

struct seen {
	unsigned samples, records, notes;
	uint64_t lost;
	char unwind_mode[16], wait_mode[16];
};

static int see_session(void *context, const struct capture_session *session)
{
	struct seen *seen = context;

	snprintf(seen->unwind_mode, sizeof(seen->unwind_mode), "%s", session->unwind_mode);
	snprintf(seen->wait_mode, sizeof(seen->wait_mode), "%s", session->wait_mode);
	return 0;
}

static int see_sample(void *context, const struct capture_sample *sample)
{
	struct seen *seen = context;

	seen->samples++;
	return 0;
}

static int see_stats(void *context, const struct capture_stats *stats)
{
	struct seen *seen = context;

	if (!stats->complete)
		return 0;
	for (uint32_t i = 0; i < stats->loss_count; i++)
		seen->lost +=
			strcmp(stats->losses[i].where, "toy_box") == 0 ? stats->losses[i].count : 0;
	for (uint32_t i = 0; i < stats->note_count; i++)
		seen->notes += strcmp(stats->notes[i], TOY_NOTE) == 0;
	return 0;
}

/* No other source is there, and nobody's privileges are needed. */
static void test_a_recording_of_the_toy(void **state)
{
	static const struct capture_visitor visitor = {
		.session = see_session, .sample = see_sample, .stats = see_stats};
	char *command[] = {"true", NULL};
	struct session_options options = {
		.output = path,
		.command = command,
		.period_ns = 10000000,
		.sources = toy_table,
		.live = {.input_fd = -1},
	};
	struct session_result result;
	struct seen seen = {0};
	struct errmsg err;

	assert_int_equal(session_run(&options, &result, &err), 0);
	assert_int_equal(result.command_status, 0);
	assert_string_equal(toy_script.calls, "pokfsSFc");
	assert_int_equal(capture_read(path, &visitor, &seen, NULL, &err), 0);
	assert_int_equal(seen.samples, TOY_SAMPLES);
	assert_int_equal(seen.lost, TOY_LOST);
	assert_int_equal(seen.notes, 1);
	assert_string_equal(seen.unwind_mode, "toy");
	assert_string_equal(seen.wait_mode, "off");
	session_result_done(&result);
}

static void see_record(void *context, const struct wire_record *record)
{
	struct seen *seen = context;

	seen->records++;
}

static void add_note(void *context, const char *sentence)
{
	struct strbuf *notes = context;

	strbuf_addf(notes, "%s\n", sentence);
}

static void test_a_set_calls_in_order(void **state)
{
	const struct source_settings settings = {.pid = 1};
	struct source_set set = {0};
	struct seen seen = {0};
	const struct source_sink sink = {.context = &seen, .record = see_record};
	struct source_account account;
	int fds[4];

	assert_int_equal(source_set_timeout_ms(&set, 100), 100);
	assert_int_equal(source_set_drain(&set, &sink), 0); /* an empty set */
	assert_int_equal(source_set_probe(&set, toy_table, &settings, NULL), 0);
	assert_int_equal(source_set_open(&set, SOURCE_BEFORE_COMMAND, &settings, NULL), 0);
	assert_int_equal(source_set_switch(&set, true), 0); /* it is not open */
	assert_string_equal(toy_script.calls, "p");
	assert_int_equal(source_set_open(&set, SOURCE_WITH_COMMAND, &settings, NULL), 0);
	assert_int_equal(source_set_open(&set, SOURCE_WITH_COMMAND, &settings, NULL), 0);
	assert_string_equal(set.offered.unwind_mode, "toy");
	assert_int_equal(source_set_follow(&set, 1, NULL), 0);
	assert_int_equal(source_set_start(&set, NULL), 0);
	assert_int_equal(source_set_switch(&set, false), 0);
	assert_int_equal(source_set_resume(&set, 1), 0); /* it has none of these two */
	source_set_pause(&set);
	assert_int_equal(source_set_descriptors(&set, fds, 0), 0);
	assert_int_equal(source_set_descriptors(&set, fds, 4), 1);
	assert_int_equal(source_set_timeout_ms(&set, 100), 7);
	assert_int_equal(source_set_timeout_ms(&set, 1), 1);
	assert_int_equal(source_set_drain(&set, &sink), 0);
	assert_int_equal(seen.records, TOY_SAMPLES);
	source_set_stop(&set);
	source_set_stop(&set);
	assert_int_equal(source_set_finish(&set, 2, &sink), 0);
	source_set_account(&set, &account);
	assert_int_equal(account.losses.count, 1);
	assert_int_equal(account.samples_lost, TOY_LOST);
	source_account_done(&account);
	source_set_close(&set);
	source_set_close(&set);
	assert_string_equal(toy_script.calls, "pokfs-SFc");
}

static void test_what_nobody_asks_for_is_not_opened(void **state)
{
	const struct source_settings settings = {0};
	struct source_set set = {0};

	toy_script.is_unwanted = true;
	assert_int_equal(source_set_probe(&set, toy_table, &settings, NULL), 0);
	assert_int_equal(source_set_open(&set, SOURCE_WITH_COMMAND, &settings, NULL), 0);
	assert_string_equal(toy_script.calls, "p");
	source_set_close(&set);
}

static void test_a_needed_source_ends_the_recording(void **state)
{
	char *command[] = {"true", NULL};
	struct session_options options = {
		.output = path, .command = command, .period_ns = 10000000, .sources = toy_table};
	struct session_result result;
	struct errmsg err;

	unlink(path);
	toy_script.refuses = true;
	assert_int_equal(session_run(&options, &result, &err), -EPERM);
	assert_string_equal(err.text, "the toy is in its box; take it out");
	assert_int_equal(access(path, F_OK), -1); /* nothing was begun */
	session_result_done(&result);
	forget_calls(NULL);
	toy_script.fails = true;
	assert_int_equal(session_run(&options, &result, &err), -EIO);
	assert_string_equal(err.text, "the toy is broken; buy a new one");
	session_result_done(&result);
}

static void test_an_optional_source_is_left_out_with_a_note(void **state)
{
	const struct source_settings settings = {0};
	struct source optional = toy_source;
	const struct source *const table[] = {&optional, &toy_source, NULL};
	_cleanup_strbuf_ struct strbuf notes = {0};
	struct source_set set = {0};

	optional.is_optional = true;
	toy_script.fails = true;
	assert_int_equal(source_set_probe(&set, table, &settings, NULL), 0);
	assert_int_equal(source_set_open(&set, SOURCE_WITH_COMMAND, &settings, NULL), -EIO);
	source_set_notes(&set, add_note, &notes);
	assert_string_equal(strbuf_cstr(&notes), "the toy is broken; buy a new one\n");
	source_set_close(&set);
}

/* Whoever adds one finds the rules held: what must be there is, and offers come before uses. */
static void test_the_table(void **state)
{
	size_t count = 0;

	for (const struct source *const *source = source_table; *source; source++, count++) {
		assert_non_null((*source)->name);
		assert_non_null((*source)->open);
		assert_non_null((*source)->close);
		for (size_t i = 0; i < count; i++)
			assert_string_not_equal((*source)->name, source_table[i]->name);
	}
	assert_true(count < SOURCES_MAX);
	assert_ptr_equal(source_table[0], &cpu_source);
}

int main(void)
{
#define test(function) cmocka_unit_test_setup(function, forget_calls)
	const struct CMUnitTest tests[] = {
		test(test_a_recording_of_the_toy),
		test(test_a_set_calls_in_order),
		test(test_what_nobody_asks_for_is_not_opened),
		test(test_a_needed_source_ends_the_recording),
		test(test_an_optional_source_is_left_out_with_a_note),
		test(test_the_table),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
