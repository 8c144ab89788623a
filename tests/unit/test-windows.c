/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and steps: in the capture and out of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture-window-example.h"

static char path[64];

static int make_path(void **state)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/test-windows.XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
	return unlink(path);
}

static void check_text(const struct strbuf *text)
{
	assert_non_null(
		strstr(text->data, "window 1 1000000000100..0 steps..open leader=500 label=\"\"\n"
				   "step 3 time=1000000000100 500/500 name=\"step\"\n"));
	assert_non_null(strstr(text->data, "step 4 time=1000000000200 500/501 name=\"step\"\n"
					   "window 1 1000000000100..1000000000300 steps..schedule "
					   "leader=500 steps=3..4 label=\"\"\n"
					   "window 2 1000000000900..0 flag..open leader=0 "
					   "label=\"the second\"\n"
					   "step 9 time=1000000000950 500/500 name=\"step\"\n"));
}

static int count_range(void *context, const struct capture_range_event *event)
{
	(*(unsigned *)context)++;
	return 0;
}

/* The slices of windows and steps are no ranges of the program. */
static void check_ranges(void)
{
	const struct capture_visitor visitor = {.range = count_range};
	struct errmsg err = {"no message"};
	unsigned count = 0;

	if (capture_read(path, &visitor, &count, NULL, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(count, 2);
}

static void test_round_trip(void **state)
{
	const struct capture_visitor visitor = window_text_visitor();

	for (unsigned uncompressed = 0; uncompressed < 2; uncompressed++) {
		_cleanup_strbuf_ struct strbuf text = {0};
		struct errmsg err = {"no message"};

		assert_int_equal(write_file(path, uncompressed, false, write_window_example), 0);
		if (capture_read(path, &visitor, &text, NULL, &err) < 0)
			fail_msg("%s", err.text);
		check_text(&text);
		check_ranges();
	}
}

static void test_a_writer_without_a_file(void **state)
{
	const struct capture_visitor visitor = {
		.session = text_session,
		.process = text_process,
		.sample = text_sample,
		.window = text_window,
		.step = text_step,
	};
	_cleanup_strbuf_ struct strbuf text = {0};
	struct capture_writer *writer;

	assert_int_equal(capture_writer_open_live(&writer, &visitor, &text, NULL), 0);
	assert_int_equal(write_window_example(writer), 0);
	assert_int_equal(capture_writer_close(writer, NULL), 0);
	assert_non_null(strstr(text.data, "window 1 1000000000100..1000000000300 steps..schedule"));
	assert_non_null(strstr(text.data, "step 9 time=1000000000950 500/500 name=\"step\"\n"));
}

static void test_names(void **state)
{
	for (unsigned i = 0; i < CAPTURE_TRIGGER_MAX; i++)
		assert_non_null(capture_window_trigger_name(i));
	for (unsigned i = 0; i < CAPTURE_REASON_MAX; i++)
		assert_non_null(capture_window_reason_name(i));
	assert_null(capture_window_trigger_name(CAPTURE_TRIGGER_MAX));
	assert_null(capture_window_reason_name(CAPTURE_REASON_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_a_writer_without_a_file),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
