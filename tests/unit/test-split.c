/* SPDX-License-Identifier: Apache-2.0 */
/* A capture split by its windows: each part is whole by itself, and has nothing of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture-window-example.h"
#include "capture/split/split.h"

#define PID     WINDOW_EXAMPLE_PID
#define WINDOWS 70 /* more than are written at once */

static const uint64_t start_ns = 1000000000000;

static char folder[64], path[128];

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/sonde-split-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/run.pftrace", folder);
	return 0;
}

static void remove_parts(void)
{
	for (unsigned i = 1; i <= WINDOWS; i++) {
		_cleanup_free_ char *part = capture_split_path(path, i);

		unlink(part);
	}
}

static int remove_folder(void **state)
{
	remove_parts();
	unlink(path);
	return rmdir(folder); /* fails when anything else was left there */
}

static void read_part(uint32_t window, struct strbuf *text)
{
	const struct capture_visitor visitor = window_text_visitor();
	_cleanup_free_ char *part = capture_split_path(path, window);
	struct capture_read_result read;
	struct errmsg err = {"no message"};

	strbuf_clear(text);
	if (capture_read(part, &visitor, text, &read, &err) < 0)
		fail_msg("%s", err.text);
	assert_false(read.truncated);
	assert_int_equal(read.skipped_packets, 0);
}

static void check_has(const struct strbuf *text, const char *wanted)
{
	if (!strstr(text->data, wanted))
		fail_msg("%s is not in\n%s", wanted, text->data);
}

static void check_lacks(const struct strbuf *text, const char *unwanted)
{
	if (strstr(text->data, unwanted))
		fail_msg("%s is in\n%s", unwanted, text->data);
}

static uint32_t split_it(void)
{
	struct errmsg err = {"no message"};
	uint32_t count = 77;

	if (capture_split(path, NULL, &count, &err) < 0)
		fail_msg("%s", err.text);
	return count;
}

static void test_paths(void **state)
{
	static const char *const paths[][2] = {
		{"run.pftrace", "run.w3.pftrace"},
		{"/a.pftrace/b", "/a.pftrace/b.w3"},
		{".pftrace", ".pftrace.w3"},
		{"x", "x.w3"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_free_ char *split = capture_split_path(paths[i][0], 3);

		assert_string_equal(split, paths[i][1]);
	}
}

static void test_example(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	assert_int_equal(write_file(path, true, false, write_window_example), 0);
	assert_int_equal(split_it(), 2);
	read_part(1, &text);
	check_has(&text, "host=\"node-7\"");
	check_has(&text, "process 500 ");
	check_has(&text, "sample time=1000000000150 ");
	check_has(&text, "step 4 time=1000000000200 500/501");
	check_has(&text, "window 1 1000000000100..1000000000300 steps..schedule leader=500 "
			 "steps=3..4 label=\"\"");
	check_lacks(&text, "window 2");
	check_lacks(&text, "1000000000990");
	read_part(2, &text);
	check_has(&text, "sample time=1000000000990 ");
	check_has(&text, "window 2 1000000000900..0 flag..open leader=0 label=\"the second\"");
	check_lacks(&text, "window 1");
	check_lacks(&text, "1000000000150");
}

/* Window N is from 100 N to 100 N + 50. */
static struct capture_window window_of(uint32_t number)
{
	return (struct capture_window){
		.number = number,
		.begin_ns = start_ns + number * 100,
		.end_ns = start_ns + number * 100 + 50,
		.first_step = 1,
		.closed_by = CAPTURE_REASON_TRIGGER,
		.opened_by = CAPTURE_TRIGGER_FLAG,
	};
}

static int write_stack(struct capture_writer *writer, const char *function, uint64_t rel_pc,
	capture_id mapping, capture_id *ret_callstack)
{
	const struct capture_frame frame = {.function = function,
		.mapping = mapping,
		.rel_pc = rel_pc,
		.kind = CAPTURE_FRAME_NATIVE};
	capture_id id = 0;
	int r = capture_writer_frame(writer, &frame, &id);

	return r
		       ?: capture_writer_callstack(
				  writer, &id, 1, WIRE_STOP_DEPTH, WIRE_PYTHON_NONE, ret_callstack);
}

/* One sample in each window, of a function of its own, and one that all have; late lines. */
static int write_many(struct capture_writer *writer)
{
	static const uint8_t build_id[] = {0xab, 0x01};
	static const struct capture_mapping mappings[] = {
		{.path = "/lib/one.so", .build_id = build_id, .build_id_length = 2},
		{.path = "/lib/two.so"}};
	static const char *const notes[] = {"A note."};
	const struct capture_stats stats = {.samples = 2 * WINDOWS,
		.samples_lost = 5,
		.notes = notes,
		.note_count = 1,
		.exit_status = 3,
		.complete = true};
	int r = capture_writer_session(writer, &example_session);
	capture_id one, two, all = 0;

	r = r ?: capture_writer_mapping(writer, &mappings[0], &one);
	r = r ?: capture_writer_mapping(writer, &mappings[1], &two);
	r = r ?: write_stack(writer, "everywhere", 7, one, &all);
	for (uint32_t i = WINDOWS; r == 0 && i > 0; i--) { /* late windows first */
		const struct capture_window window = window_of(i);
		struct capture_sample sample = {.time_ns = window.begin_ns,
			.pid = PID,
			.tid = PID,
			.mode = CAPTURE_MODE_USER,
			.callstack = all};
		char function[32];

		snprintf(function, sizeof(function), "only_%u", i);
		r = capture_writer_sample(writer, &sample);
		r = r ?: write_stack(writer, function, i * 16, two, &sample.callstack);
		sample.time_ns = window.end_ns - 1;
		r = r ?: capture_writer_sample(writer, &sample);
		sample.time_ns = window.end_ns; /* in none */
		r = r ?: capture_writer_sample(writer, &sample);
		r = r ?: capture_writer_window(writer, &window);
	}
	for (uint32_t i = 1; r == 0 && i <= WINDOWS; i++) {
		const struct capture_symbol_line line = {"inlined", "/src/a.c", i};

		r = capture_writer_symbols(writer, two, i * 16, &line, 1);
	}
	return r ?: capture_writer_stats(writer, &stats);
}

static void test_many(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	assert_int_equal(write_file(path, false, false, write_many), 0);
	assert_int_equal(split_it(), WINDOWS);
	for (uint32_t i = 1; i <= WINDOWS; i++) {
		char wanted[128];

		read_part(i, &text);
		check_has(&text, "path=\"/lib/one.so\" build_id=ab01");
		check_has(&text, "function=\"everywhere\"");
		check_has(&text, "callstack 2 depth 2\n");
		check_lacks(&text, "callstack 3 ");
		snprintf(wanted, sizeof(wanted), "function=\"only_%u\" mapping=2 rel_pc=%#x ", i,
			i * 16);
		check_has(&text, wanted);
		snprintf(wanted, sizeof(wanted), "file=\"/src/a.c\" line=%u\n", i);
		check_has(&text, wanted);
		snprintf(wanted, sizeof(wanted), "sample time=%llu ",
			(unsigned long long)window_of(i).end_ns);
		check_lacks(&text, wanted);
		check_has(&text, " samples=2 lost=5 complete=0 ");
		check_has(&text, "note=\"A note.\" note=\"This is window ");
		check_has(&text, " exit=3 complete=1\n");
	}
}

static int write_launch(struct capture_writer *writer, uint64_t time_ns, uint64_t correlation,
	capture_id callstack, uint64_t same_as)
{
	const struct capture_launch_stack stack = {.time_ns = start_ns + time_ns,
		.pid = PID,
		.tid = callstack ? PID : 0,
		.correlation = correlation,
		.callstack = callstack,
		.same_as = same_as};
	const struct capture_device_work work = {.start_ns = start_ns + time_ns + 1,
		.end_ns = start_ns + time_ns + 2,
		.pid = PID,
		.tid = PID,
		.correlation = correlation,
		.kind = WIRE_DEVICE_KERNEL,
		.device = "GPU 0"};
	int r = capture_writer_launch_stack(writer, &stack);

	return r ?: capture_writer_device_work(writer, &work);
}

/* Window 2 has launches with stacks of window 1, and a graph that was captured before any. */
static int write_device(struct capture_writer *writer)
{
	const struct capture_launch captured = {.time_ns = start_ns + 10,
		.pid = PID,
		.tid = PID,
		.correlation = 1,
		.kind = WIRE_DEVICE_KERNEL,
		.untimed = WIRE_DEVICE_CAPTURED};
	const struct capture_launch_stack its_stack = {
		.time_ns = start_ns + 10, .pid = PID, .tid = PID, .correlation = 1, .callstack = 1};
	int r = capture_writer_session(writer, &example_session);
	capture_id first, second;

	r = r ?: write_stack(writer, "capture", 1, 0, &first);
	r = r ?: write_stack(writer, "launch", 2, 0, &second);
	r = r ?: capture_writer_launch(writer, &captured);
	r = r ?: capture_writer_launch_stack(writer, &its_stack);
	for (uint32_t i = 1; r == 0 && i <= 2; i++) {
		const struct capture_window window = window_of(i);

		r = capture_writer_window(writer, &window);
	}
	r = r ?: write_launch(writer, 110, 2, second, 0);
	r = r ?: write_launch(writer, 120, 3, 0, 2);
	r = r ?: write_launch(writer, 210, 4, 0, 2);
	return r;
}

static void test_launches(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	assert_int_equal(write_file(path, false, false, write_device), 0);
	assert_int_equal(split_it(), 2);
	read_part(1, &text);
	check_has(&text, "launch kernel time=1000000000010");
	check_has(&text, "correlation=1 callstack=1\n");
	check_has(&text, "correlation=2 callstack=2\n");
	check_has(&text, "correlation=3 callstack=0 same_as=2\n");
	check_lacks(&text, "correlation=4 ");
	read_part(2, &text);
	check_has(&text, "correlation=1 callstack=1\n");
	check_has(&text, "pid=500 tid=500 correlation=4 callstack=2\n");
	check_has(&text, "function=\"launch\"");
	check_lacks(&text, "correlation=3 ");
}

static int write_range(struct capture_writer *writer, uint64_t time_ns, uint32_t lane,
	const char *domain, const char *name)
{
	const struct capture_range_event event = {.time_ns = start_ns + time_ns,
		.pid = PID,
		.tid = PID,
		.lane = lane,
		.kind = name ? CAPTURE_RANGE_BEGIN : CAPTURE_RANGE_END,
		.domain = domain,
		.name = name ? name : "",
		.category = ""};

	return capture_writer_range(writer, &event);
}

static int write_ranges(struct capture_writer *writer)
{
	const struct capture_window window = window_of(1);
	int r = capture_writer_session(writer, &example_session);

	r = r ?: capture_writer_window(writer, &window);
	r = r ?: write_range(writer, 101, 0, "", "default");
	r = r ?: write_range(writer, 102, 0, "other", "of_other");
	r = r ?: write_range(writer, 103, 1, "other", "first_lane");
	r = r ?: write_range(writer, 104, 2, "other", "second_lane");
	r = r ?: write_range(writer, 105, 1, "other", NULL);
	r = r ?: write_range(writer, 106, 0, "", NULL);
	r = r ?: write_range(writer, 107, 2, "other", NULL);
	return r ?: write_range(writer, 108, 0, "other", NULL);
}

/* Pairs each end with the innermost begin of its track. */
struct pairs {
	struct {
		uint64_t track;
		char name[16];
	} open[8];
	unsigned count;
	struct strbuf text;
};

static int pair_range(void *context, const struct capture_range_event *event)
{
	struct pairs *pairs = context;
	unsigned i = pairs->count;

	if (event->kind == CAPTURE_RANGE_BEGIN) {
		pairs->open[i].track = event->track;
		snprintf(pairs->open[i].name, sizeof(pairs->open[i].name), "%s", event->name);
		pairs->count++;
		return 0;
	}
	while (i-- > 0 && pairs->open[i].track != event->track)
		;
	assert_in_range(i, 0, 7);
	strbuf_addf(&pairs->text, "%s ", pairs->open[i].name);
	pairs->open[i].track = 0;
	return 0;
}

static void test_ranges(void **state)
{
	const struct capture_visitor visitor = {.range = pair_range};
	_cleanup_free_ char *part = capture_split_path(path, 1);
	struct pairs pairs = {0};

	assert_int_equal(write_file(path, false, false, write_ranges), 0);
	assert_int_equal(split_it(), 1);
	assert_int_equal(capture_read(part, &visitor, &pairs, NULL, NULL), 0);
	assert_string_equal(pairs.text.data, "first_lane default second_lane of_other ");
	strbuf_done(&pairs.text);
}

static int write_counters(struct capture_writer *writer)
{
	int r = capture_writer_session(writer, &example_session);

	for (uint32_t i = 1; r == 0 && i <= 2; i++) {
		const struct capture_window window = window_of(i);
		const struct capture_counter counter = {
			.time_ns = window.begin_ns + i, .pid = PID, .name = "loss", .value = i};

		r = capture_writer_window(writer, &window);
		r = r ?: capture_writer_counter(writer, &counter);
	}
	return r;
}

static int sum_counters(void *context, const struct capture_counter *counter)
{
	assert_string_equal(counter->name, "loss");
	*(double *)context += counter->value;
	return 0;
}

static void test_counters(void **state)
{
	const struct capture_visitor visitor = {.counter = sum_counters};

	assert_int_equal(write_file(path, false, false, write_counters), 0);
	assert_int_equal(split_it(), 2);
	for (uint32_t i = 1; i <= 2; i++) {
		_cleanup_free_ char *part = capture_split_path(path, i);
		double sum = 0;

		assert_int_equal(capture_read(part, &visitor, &sum, NULL, NULL), 0);
		assert_true(sum == i);
	}
}

static void test_no_windows(void **state)
{
	assert_int_equal(write_example_file(path, false, false), 0);
	assert_int_equal(split_it(), 0);
}

/* A full disk, as seen through the limit of file sizes: no half of a part is left. */
static void test_full(void **state)
{
	struct rlimit limit, tight;
	struct errmsg err = {""};
	uint32_t count;

	remove_parts();
	assert_int_equal(write_file(path, false, false, write_many), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	tight = (struct rlimit){.rlim_cur = 100, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	assert_int_equal(capture_split(path, NULL, &count, &err), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_non_null(strstr(err.text, "run.w"));
	for (uint32_t i = 1; i <= WINDOWS; i++) {
		_cleanup_free_ char *part = capture_split_path(path, i);

		assert_int_equal(access(part, F_OK), -1);
	}
	assert_int_equal(access(path, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_example),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_launches),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_no_windows),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
