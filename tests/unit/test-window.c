/* SPDX-License-Identifier: Apache-2.0 */
/* When windows open and close, without processes: what is asked for, the list, the triggers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/windows/flag.h"
#include "collect/windows/spec.h"
#include "collect/windows/trigger.h"
#include "collect/windows/windows.h"

/* ---- what is asked for ---- */

static struct window_spec parse(const char *text)
{
	struct window_spec spec = {0};
	struct errmsg err = {{0}};

	assert_int_equal(window_spec_parse(&spec, text, &err), 0);
	assert_string_equal(err.text, "");
	return spec;
}

static void refuse(const char *text, const char *says)
{
	struct window_spec spec = {0};
	struct errmsg err = {{0}};

	assert_int_equal(window_spec_parse(&spec, text, &err), -EINVAL);
	if (!strstr(err.text, says))
		fail_msg("'%s' says '%s', not '%s'", text, err.text, says);
	assert_null(strchr(err.text, '\n'));
}

static void test_steps(void **state)
{
	struct window_spec spec = parse("steps:wait=2,warmup=0,active=7,repeat=0");

	assert_int_equal(spec.trigger, CAPTURE_TRIGGER_STEPS);
	assert_int_equal(spec.schedule.kind, WIRE_SCHEDULE_STEPS);
	assert_int_equal(spec.schedule.wait, 2);
	assert_int_equal(spec.schedule.warmup, 0);
	assert_int_equal(spec.schedule.active, 7);
	assert_int_equal(spec.schedule.repeat, 0);
	spec = parse("steps");
	assert_int_equal(spec.schedule.wait, 1);
	assert_int_equal(spec.schedule.active, 3);
	assert_int_equal(spec.schedule.repeat, 1);
	assert_int_equal(parse("steps:active=1000000000").schedule.active, 1000000000);
}

static void test_bad_steps(void **state)
{
	static const char *const bad[] = {"steps:wait=-1", "steps:wait=", "steps:wait", "steps:,",
		"steps:wait=1,", "steps:wait=1;active=2", "steps:wait=1,wait=2", "steps:idle=1",
		"steps:active=1.5", "steps:active=1000000001",
		"steps:active=99999999999999999999999", "steps:active= 1", "steps:active=0x10",
		"steps:=3", "steps:active=3 "};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		refuse(bad[i], "try --window steps:wait=1,warmup=1,active=3,repeat=1");
	refuse("steps:active=0", "would record nothing");
}

static void test_calls(void **state)
{
	struct window_spec spec = parse("calls:2000-2010,500-510,7");

	assert_int_equal(spec.schedule.kind, WIRE_SCHEDULE_CALLS);
	assert_int_equal(spec.schedule.interval_count, 3);
	assert_int_equal(spec.schedule.intervals[0].first, 7);
	assert_int_equal(spec.schedule.intervals[0].last, 7);
	assert_int_equal(spec.schedule.intervals[1].first, 500);
	assert_int_equal(spec.schedule.intervals[2].last, 2010);
}

static void test_bad_calls(void **state)
{
	static const char *const bad[] = {"calls:", "calls", "calls:0-3", "calls:5-4", "calls:-3",
		"calls:3-", "calls:3,", "calls:3-4-5", "calls:a-b", "calls:1-9999999999",
		"calls:1 - 2"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		refuse(bad[i], "try --window calls:500-503");
	refuse("calls:1-5,5-9", "overlap");
	refuse("calls:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "at most 16 ranges");
}

static void test_time(void **state)
{
	struct window_spec spec = parse("time:10..20.5");

	assert_int_equal(spec.begin_ns, 10000000000);
	assert_int_equal(spec.end_ns, 20500000000);
	spec = parse("time:250ms..");
	assert_int_equal(spec.begin_ns, 250000000);
	assert_int_equal(spec.end_ns, 0);
	spec = parse("time:..2min");
	assert_int_equal(spec.begin_ns, 0);
	assert_int_equal(spec.end_ns, 120000000000);
	assert_int_equal(parse("time:10s..1h").end_ns, 3600000000000);
}

static void test_bad_time(void **state)
{
	static const char *const bad[] = {"time:", "time", "time:10", "time:-1..2", "time:2..1",
		"time:1..1", "time:..0", "time:a..b", "time:1..2x", "time:1e3..2e3", "time:nan..",
		"time:1..99999999", "time:1...2", "time:1..2..3", "time:0x1..2"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		refuse(bad[i], "try --window time:10..20");
}

static void test_other_kinds(void **state)
{
	char longer[5000] = "flag:/";

	assert_int_equal(parse("manual").trigger, CAPTURE_TRIGGER_MANUAL);
	assert_int_equal(parse("signal:USR2").signal, SIGUSR2);
	assert_int_equal(parse("signal:SIGUSR1").signal, SIGUSR1);
	assert_string_equal(parse("flag:a:b").path, "a:b");
	refuse("manual:now", "write --window manual");
	refuse("signal:KILL", "takes USR1 or USR2");
	refuse("signal", "takes USR1 or USR2");
	refuse("flag:", "takes the path of a file");
	refuse("flag:/tmp/", "takes the path of a file");
	memset(longer + 6, 'x', sizeof(longer) - 7);
	refuse(longer, "takes the path of a file");
	refuse("", "--window takes");
	refuse("flags:/tmp/x", "--window takes");
	refuse("step:active=1", "--window takes");
}

static void test_patterns(void **state)
{
	struct errmsg err = {{0}};
	char longer[WIRE_STEP_PATTERN_BYTES + 1];

	assert_int_equal(window_spec_check_pattern("^train|eval$", &err), 0);
	assert_int_equal(window_spec_check_pattern("(", &err), -EINVAL);
	assert_non_null(strstr(err.text, "not an extended regular expression"));
	assert_int_equal(window_spec_check_pattern("", &err), -EINVAL);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(window_spec_check_pattern(longer, &err), -EINVAL);
}

/* ---- the list ---- */

struct edges {
	struct windows windows;
	uint64_t now_ns;
	uint64_t begin_ns, end_ns; /* told at the next look; 0: nothing */
};

static uint64_t look(void *context)
{
	struct edges *edges = context;

	if (edges->begin_ns)
		assert_int_equal(
			windows_begin(&edges->windows, edges->begin_ns, CAPTURE_TRIGGER_STEPS), 0);
	if (edges->end_ns)
		windows_end(&edges->windows, edges->end_ns, CAPTURE_REASON_SCHEDULE);
	edges->begin_ns = edges->end_ns = 0;
	return edges->now_ns;
}

static void test_moments(void **state)
{
	struct edges edges = {.now_ns = 1000};
	struct windows *windows = &edges.windows;

	windows->look = look;
	windows->context = &edges;
	assert_false(windows_has(windows, 50));
	edges.now_ns = 3000;
	edges.begin_ns = 1500;
	edges.end_ns = 2500;
	assert_false(windows_has(windows, 1499));
	assert_true(windows_has(windows, 1500));
	assert_true(windows_has(windows, 2499));
	assert_false(windows_has(windows, 2500));
	assert_false(windows_has(windows, 0));
	/* What is still to come by our clock is nobody's, however often it is asked for. */
	assert_false(windows_has(windows, UINT64_MAX));
	assert_int_equal(windows->known_ns, 3000);
	assert_int_equal(windows_last(windows)->closed_by, CAPTURE_REASON_SCHEDULE);
	windows_done(windows);
}

/* A moment that was answered for keeps its answer: the edge is moved. */
static void test_late_edges(void **state)
{
	struct edges edges = {.now_ns = 1000};
	struct windows *windows = &edges.windows;

	windows->look = look;
	windows->context = &edges;
	assert_false(windows_has(windows, 900));
	edges.now_ns = 2000;
	edges.begin_ns = 800;
	assert_true(windows_has(windows, 1100));
	assert_int_equal(windows_last(windows)->begin_ns, 1000);
	edges.now_ns = 3000;
	edges.end_ns = 1050;
	assert_false(windows_has(windows, 2100));
	assert_int_equal(windows_last(windows)->end_ns, 2000);
	assert_true(windows_has(windows, 1999));
	windows_done(windows);
}

/* Whatever moments it is given. */
static void test_windows_follow_one_another(void **state)
{
	struct windows windows = {0};

	assert_int_equal(windows_begin(&windows, 100, CAPTURE_TRIGGER_STEPS), 0);
	windows_end(&windows, 900, CAPTURE_REASON_SCHEDULE);
	assert_int_equal(windows_begin(&windows, 50, CAPTURE_TRIGGER_STEPS), 0);
	assert_int_equal(windows_last(&windows)->begin_ns, 900);
	windows_end(&windows, 60, CAPTURE_REASON_SCHEDULE);
	assert_int_equal(windows_last(&windows)->end_ns, 900);
	windows_done(&windows);
}

static void test_planned_end(void **state)
{
	struct edges edges = {.now_ns = 5000, .begin_ns = 1000};
	struct windows *windows = &edges.windows;

	windows->look = look;
	windows->context = &edges;
	assert_true(windows_has(windows, 1000));
	windows->planned_end_ns = 2000;
	assert_true(windows_has(windows, 1999));
	assert_false(windows_has(windows, 2000));
	windows_end(windows, 4000, CAPTURE_REASON_MAX_DURATION);
	assert_int_equal(windows_last(windows)->end_ns, 2000);
	windows_done(windows);
}

static void expect_cut(
	struct windows *windows, uint64_t begin, uint64_t end, uint64_t cut_begin, uint64_t cut_end)
{
	bool is_recorded = windows_cut(windows, &begin, &end);

	assert_int_equal(is_recorded, cut_end != 0);
	if (!is_recorded)
		return;
	assert_int_equal(begin, cut_begin);
	assert_int_equal(end, cut_end);
}

static void test_cuts(void **state)
{
	struct edges edges = {.now_ns = 9000, .begin_ns = 1000, .end_ns = 2000};
	struct windows *windows = &edges.windows;

	windows->look = look;
	windows->context = &edges;
	windows_has(windows, 8000);
	edges.now_ns = 20000;
	edges.begin_ns = 10000;
	windows_has(windows, 9500);
	expect_cut(windows, 1100, 1200, 1100, 1200);
	expect_cut(windows, 500, 1200, 1000, 1200);
	expect_cut(windows, 1800, 2500, 1800, 1999);
	expect_cut(windows, 100, 9000, 1000, 1999);
	expect_cut(windows, 2000, 9000, 0, 0);
	expect_cut(windows, 100, 1000, 0, 0);
	expect_cut(windows, 3000, 10000, 0, 0);
	expect_cut(windows, 1500, 10500, 10000, 10500);
	expect_cut(windows, 10500, 99999, 0, 0);
	windows_done(windows);
}

/* Without windows: from its begin to its end, as far as they are known. */
static void test_cuts_to_the_recording(void **state)
{
	struct windows windows = {.is_whole = true};
	uint64_t begin_ns = 1, end_ns = 9000;

	assert_true(windows_cut(&windows, &begin_ns, &end_ns));
	assert_int_equal(begin_ns, 1);
	assert_int_equal(end_ns, 9000);
	windows.whole_begin_ns = 1000;
	assert_true(windows_cut(&windows, &begin_ns, &end_ns));
	assert_int_equal(begin_ns, 1000);
	assert_int_equal(end_ns, 9000);
	windows.whole_end_ns = 2000;
	assert_true(windows_cut(&windows, &begin_ns, &end_ns));
	assert_int_equal(begin_ns, 1000);
	assert_int_equal(end_ns, 2000);
	for (unsigned i = 0; i < 2; i++) {
		begin_ns = i ? 2000 : 0;
		end_ns = i ? 3000 : 1000;
		assert_false(windows_cut(&windows, &begin_ns, &end_ns));
	}
	assert_false(windows_has_sample(&windows, 999));
	assert_true(windows_has_sample(&windows, 1000));
	assert_true(windows_has_sample(&windows, 2000));
	assert_false(windows_has_sample(&windows, 2001));
	assert_true(windows_has(&windows, 2001));
}

static void test_many_windows(void **state)
{
	struct windows windows = {0};

	for (uint64_t i = 0; i < WINDOWS_MAX; i++) {
		assert_int_equal(windows_begin(&windows, 10 * i + 1, CAPTURE_TRIGGER_FLAG), 0);
		windows_end(&windows, 10 * i + 5, CAPTURE_REASON_TRIGGER);
	}
	assert_int_equal(windows_begin(&windows, 1 << 30, CAPTURE_TRIGGER_FLAG), -E2BIG);
	windows.known_ns = UINT64_MAX;
	for (uint64_t i = 0; i < WINDOWS_MAX; i++) {
		assert_int_equal(windows_find(&windows, 10 * i + 4)->number, i + 1);
		assert_null(windows_find(&windows, 10 * i + 5));
	}
	windows_done(&windows);
}

/* ---- triggers ---- */

static void test_flag_trigger(void **state)
{
	struct window_spec spec = {.trigger = CAPTURE_TRIGGER_FLAG};
	struct window_trigger trigger = {.spec = &spec};
	const uint64_t gap = WINDOW_FLAG_GAP_NS;

	window_trigger_start(&trigger, 100);
	assert_int_equal(window_trigger_flag(&trigger, false, 200), WINDOW_STAY);
	assert_int_equal(window_trigger_flag(&trigger, true, 300), WINDOW_OPEN);
	window_trigger_opened(&trigger, 300);
	assert_int_equal(window_trigger_flag(&trigger, true, 400), WINDOW_STAY);
	assert_int_equal(window_trigger_flag(&trigger, false, 500), WINDOW_CLOSE);
	window_trigger_closed(&trigger, CAPTURE_REASON_TRIGGER, 500);
	/* Back at once: not yet, and then by the clock. */
	assert_int_equal(window_trigger_flag(&trigger, true, 600), WINDOW_STAY);
	assert_int_equal(trigger.held_back, 1);
	assert_int_equal(window_trigger_due_ns(&trigger), 500 + gap);
	assert_int_equal(window_trigger_tick(&trigger, 499 + gap, NULL), WINDOW_STAY);
	assert_int_equal(window_trigger_tick(&trigger, 500 + gap, NULL), WINDOW_OPEN);
}

/* A limit closed the window: the flag must go before the next one. */
static void test_flag_after_a_limit(void **state)
{
	struct window_spec spec = {.trigger = CAPTURE_TRIGGER_FLAG, .max_duration_ns = NS_PER_S};
	struct window_trigger trigger = {.spec = &spec};
	enum capture_window_reason reason = CAPTURE_REASON_NONE;

	assert_int_equal(window_trigger_flag(&trigger, true, 1), WINDOW_OPEN);
	window_trigger_opened(&trigger, 1);
	assert_int_equal(window_trigger_planned_end_ns(&trigger), 1 + NS_PER_S);
	assert_int_equal(window_trigger_tick(&trigger, 1 + NS_PER_S, &reason), WINDOW_CLOSE);
	assert_int_equal(reason, CAPTURE_REASON_MAX_DURATION);
	window_trigger_closed(&trigger, reason, 1 + NS_PER_S);
	assert_int_equal(window_trigger_flag(&trigger, true, 3 * NS_PER_S), WINDOW_STAY);
	assert_int_equal(window_trigger_due_ns(&trigger), UINT64_MAX);
	assert_int_equal(window_trigger_flag(&trigger, false, 4 * NS_PER_S), WINDOW_STAY);
	assert_int_equal(window_trigger_flag(&trigger, true, 5 * NS_PER_S), WINDOW_OPEN);
}

static void test_time_trigger(void **state)
{
	struct window_spec spec = {
		.trigger = CAPTURE_TRIGGER_TIME, .begin_ns = NS_PER_S, .end_ns = 2 * NS_PER_S};
	struct window_trigger trigger = {.spec = &spec};
	enum capture_window_reason reason = CAPTURE_REASON_NONE;

	window_trigger_start(&trigger, 500);
	assert_int_equal(window_trigger_due_ns(&trigger), NS_PER_S + 500);
	assert_int_equal(window_trigger_tick(&trigger, NS_PER_S, &reason), WINDOW_STAY);
	assert_int_equal(window_trigger_tick(&trigger, NS_PER_S + 500, &reason), WINDOW_OPEN);
	window_trigger_opened(&trigger, NS_PER_S + 500);
	assert_int_equal(window_trigger_due_ns(&trigger), 2 * NS_PER_S + 500);
	assert_int_equal(window_trigger_tick(&trigger, 2 * NS_PER_S + 500, &reason), WINDOW_CLOSE);
	assert_int_equal(reason, CAPTURE_REASON_TRIGGER);
	window_trigger_closed(&trigger, reason, 2 * NS_PER_S + 500);
	/* It comes once; what is opened by hand later does not end by it. */
	assert_int_equal(window_trigger_due_ns(&trigger), UINT64_MAX);
	window_trigger_opened(&trigger, 5 * NS_PER_S);
	assert_int_equal(window_trigger_planned_end_ns(&trigger), 0);
}

static void test_signal_trigger(void **state)
{
	struct window_spec spec = {.trigger = CAPTURE_TRIGGER_SIGNAL};
	struct window_trigger trigger = {.spec = &spec};

	assert_int_equal(window_trigger_signal(&trigger), WINDOW_OPEN);
	window_trigger_opened(&trigger, 5);
	assert_int_equal(window_trigger_signal(&trigger), WINDOW_CLOSE);
	window_trigger_closed(&trigger, CAPTURE_REASON_TRIGGER, 6);
	assert_int_equal(window_trigger_signal(&trigger), WINDOW_OPEN);
}

/* ---- the flag in the file system ---- */

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static bool is_readable(int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};

	return poll(&polled, 1, 2000) == 1;
}

static void test_flag_file(void **state)
{
	char folder[] = "/tmp/sonde-test-flag.XXXXXX", sub[64], deep[80], path[96];
	struct window_flag *flag;
	struct errmsg note = {{0}};

	assert_non_null(mkdtemp(folder));
	snprintf(sub, sizeof(sub), "%s/a", folder);
	snprintf(deep, sizeof(deep), "%s/b", sub);
	snprintf(path, sizeof(path), "%s/on", deep);
	assert_int_equal(window_flag_open(&flag, path, &note), 0);
	assert_false(window_flag_is_up(flag, &note));
	assert_non_null(strstr(note.text, "does not exist yet"));
	note.text[0] = '\0';
	/* Each folder on the way wakes us, and the flag at last. */
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_true(is_readable(window_flag_descriptor(flag)));
	assert_false(window_flag_is_up(flag, &note));
	assert_int_equal(mkdir(deep, 0700), 0);
	assert_true(is_readable(window_flag_descriptor(flag)));
	assert_false(window_flag_is_up(flag, &note));
	make_file(path);
	assert_true(is_readable(window_flag_descriptor(flag)));
	assert_true(window_flag_is_up(flag, &note));
	unlink(path);
	assert_true(is_readable(window_flag_descriptor(flag)));
	assert_false(window_flag_is_up(flag, &note));
	/* Its folder goes and comes back. */
	assert_int_equal(rmdir(deep), 0);
	assert_true(is_readable(window_flag_descriptor(flag)));
	assert_false(window_flag_is_up(flag, &note));
	assert_int_equal(mkdir(deep, 0700), 0);
	assert_true(is_readable(window_flag_descriptor(flag)));
	assert_false(window_flag_is_up(flag, &note));
	make_file(path);
	assert_true(is_readable(window_flag_descriptor(flag)));
	assert_true(window_flag_is_up(flag, &note));
	assert_string_equal(note.text, ""); /* said once */
	window_flag_free(flag);
	unlink(path);
	rmdir(deep);
	rmdir(sub);
	rmdir(folder);
}

static void test_foreign_flag(void **state)
{
	char folder[] = "/tmp/sonde-test-flag.XXXXXX", path[64];
	struct window_flag *flag;
	struct errmsg note = {{0}};

	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/on", folder);
	make_file(path);
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(window_flag_open(&flag, path, &note), 0);
	assert_false(window_flag_is_up(flag, &note));
	assert_non_null(strstr(note.text, "is owned by user 12345"));
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "12345", 1);
	assert_true(window_flag_is_up(flag, &note));
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	window_flag_free(flag);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_bad_steps),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_bad_calls),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_bad_time),
		cmocka_unit_test(test_other_kinds),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_late_edges),
		cmocka_unit_test(test_windows_follow_one_another),
		cmocka_unit_test(test_planned_end),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_cuts_to_the_recording),
		cmocka_unit_test(test_many_windows),
		cmocka_unit_test(test_flag_trigger),
		cmocka_unit_test(test_flag_after_a_limit),
		cmocka_unit_test(test_time_trigger),
		cmocka_unit_test(test_signal_trigger),
		cmocka_unit_test(test_flag_file),
		cmocka_unit_test(test_foreign_flag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
