/* SPDX-License-Identifier: Apache-2.0 */
/* A recording as a series of captures: each has what it needs of the windows before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "capture-window-example.h"
#include "capture/series/series.h"

#define PID     1 /* a process that lives as long as the test */
#define WINDOWS 4

struct fixture {
	char folder[64];
	struct capture_series *series;
	struct capture_writer *writer;
	uint64_t start_ns; /* windows of a second begin here */
	uint32_t named, closed;
};

static void window_path(const struct fixture *fixture, uint32_t window, char path[128])
{
	snprintf(path, 128, "%s/%u.pftrace", fixture->folder, window);
}

static int name_window(void *context, uint64_t begin_ns, char **ret_path, struct errmsg *err)
{
	struct fixture *fixture = context;

	*ret_path = malloc(128);
	assert_non_null(*ret_path);
	window_path(fixture, ++fixture->named, *ret_path);
	return 0;
}

static void on_closed(void *context, const struct capture_series_window *window)
{
	struct fixture *fixture = context;

	assert_null(window->error);
	fixture->closed++;
}

static int make_fixture(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	const struct capture_series_options options = {
		.size = sizeof(options),
		.every_ns = NS_PER_S,
		.writer.size = sizeof(options.writer),
		.name = name_window,
		.closed = on_closed,
		.context = fixture,
	};
	struct capture_session session = example_session;

	assert_non_null(fixture);
	snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/sonde-series-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	assert_int_equal(capture_series_new(&fixture->series, &options), 0);
	assert_int_equal(capture_writer_open_live(
				 &fixture->writer, &capture_series_visitor, fixture->series, NULL),
		0);
	fixture->start_ns = monotonic_now_ns() - WINDOWS * NS_PER_S;
	session.start_time_ns = fixture->start_ns;
	assert_int_equal(capture_writer_session(fixture->writer, &session), 0);
	*state = fixture;
	return 0;
}

static int free_fixture(void **state)
{
	struct fixture *fixture = *state;
	char path[128];

	capture_writer_free(fixture->writer);
	capture_series_free(fixture->series);
	for (uint32_t i = 1; i <= fixture->named; i++) {
		window_path(fixture, i, path);
		unlink(path);
	}
	rmdir(fixture->folder);
	free(fixture);
	return 0;
}

/* In a window from 1, so many milliseconds after its begin. */
static uint64_t moment(const struct fixture *fixture, uint32_t window, uint64_t ms)
{
	return fixture->start_ns + (window - 1) * NS_PER_S + ms * NS_PER_MS;
}

static void finish(struct fixture *fixture)
{
	const struct capture_stats stats = {
		.end_time_ns = moment(fixture, WINDOWS, 500), .exit_status = -1, .complete = true};

	assert_int_equal(capture_writer_stats(fixture->writer, &stats), 0);
	assert_int_equal(capture_series_finish(fixture->series), 0);
	assert_int_equal(fixture->closed, fixture->named);
}

static int text_range_event(void *context, const struct capture_range_event *event)
{
	strbuf_addf(context, "range %d %s\n", (int)event->kind, event->name);
	return 0;
}

static int text_device_event(void *context, const struct capture_device_event *event)
{
	strbuf_addf(context, "event %s\n", event->text ? event->text : "");
	return 0;
}

static int text_rail(void *context, const struct wire_energy_domain *domain)
{
	strbuf_addf(context, "rail %s\n", domain->name);
	return 0;
}

static void read_window(const struct fixture *fixture, uint32_t window, struct strbuf *text)
{
	struct capture_visitor visitor = window_text_visitor();
	struct capture_read_result read;
	struct errmsg err = {"no message"};
	char path[128];

	visitor.range = text_range_event;
	visitor.device_event = text_device_event;
	visitor.energy_domain = text_rail;
	window_path(fixture, window, path);
	strbuf_clear(text);
	if (capture_read(path, &visitor, text, &read, &err) < 0)
		fail_msg("%s", err.text);
	assert_false(read.truncated);
	assert_int_equal(read.skipped_packets, 0);
}

/* These windows have it, the others do not. */
static void check_windows(
	const struct fixture *fixture, const char *wanted, const bool expected[WINDOWS])
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (uint32_t i = 1; i <= WINDOWS; i++) {
		read_window(fixture, i, &text);
		if (!strstr(strbuf_cstr(&text), wanted) == expected[i - 1])
			fail_msg("window %u, %s:\n%s", i, wanted, strbuf_cstr(&text));
	}
}

static capture_id make_stack(struct fixture *fixture, const char *function, uint64_t rel_pc)
{
	const struct capture_mapping mapping = {.path = "/bin/program"};
	struct capture_frame frame = {
		.function = function, .rel_pc = rel_pc, .kind = CAPTURE_FRAME_NATIVE};
	capture_id frame_id, stack = 0;

	assert_int_equal(capture_writer_mapping(fixture->writer, &mapping, &frame.mapping), 0);
	assert_int_equal(capture_writer_frame(fixture->writer, &frame, &frame_id), 0);
	assert_int_equal(capture_writer_callstack(fixture->writer, &frame_id, 1, WIRE_STOP_COMPLETE,
				 WIRE_PYTHON_NONE, &stack),
		0);
	return stack;
}

static void add_sample(struct fixture *fixture, uint64_t time_ns, capture_id stack)
{
	const struct capture_sample sample = {.time_ns = time_ns,
		.pid = PID,
		.tid = PID,
		.mode = CAPTURE_MODE_USER,
		.callstack = stack};

	assert_int_equal(capture_writer_sample(fixture->writer, &sample), 0);
}

static void add_process(struct fixture *fixture)
{
	const struct capture_process process = {.pid = PID, .name = "program"};
	const struct capture_thread thread = {.pid = PID, .tid = PID, .name = "a thread"};

	assert_int_equal(capture_writer_process(fixture->writer, &process), 0);
	assert_int_equal(capture_writer_thread(fixture->writer, &thread), 0);
}

static void test_samples_with_their_names(void **state)
{
	struct fixture *fixture = *state;
	capture_id stack = make_stack(fixture, "work", 0x10);

	add_process(fixture);
	add_sample(fixture, moment(fixture, 1, 10), stack);
	add_sample(fixture, moment(fixture, 3, 10), stack);
	add_sample(fixture, moment(fixture, 2, 10), stack); /* late */
	add_sample(fixture, fixture->start_ns - 1, stack);  /* in no window */
	add_sample(fixture, monotonic_now_ns() + 3600 * NS_PER_S, stack);
	finish(fixture);
	check_windows(fixture, "work", (bool[]){1, 1, 1, 0});
	check_windows(fixture, "a thread", (bool[]){1, 1, 1, 0});
	check_windows(fixture, "\nsample", (bool[]){1, 1, 1, 0});
	assert_int_equal(capture_series_account(fixture->series)->late, 2);
}

static void test_a_name_that_comes_late(void **state)
{
	struct fixture *fixture = *state;
	const struct capture_symbol_line line = {.function = "named"};
	capture_id stack = make_stack(fixture, NULL, 0x20);

	add_sample(fixture, moment(fixture, 1, 10), stack);
	assert_int_equal(capture_writer_symbols(fixture->writer, 1, 0x20, &line, 1), 0);
	add_sample(fixture, moment(fixture, 3, 10), stack);
	finish(fixture);
	check_windows(fixture, "named", (bool[]){1, 0, 1, 0});
}

static void test_ranges_are_cut(void **state)
{
	struct fixture *fixture = *state;
	struct capture_range_event event = {.time_ns = moment(fixture, 1, 500),
		.pid = PID,
		.tid = PID,
		.kind = CAPTURE_RANGE_BEGIN,
		.domain = "",
		.name = "outer",
		.category = ""};

	assert_int_equal(capture_writer_range(fixture->writer, &event), 0);
	event.name = "inner";
	assert_int_equal(capture_writer_range(fixture->writer, &event), 0);
	event.kind = CAPTURE_RANGE_END;
	event.name = "";
	event.time_ns = moment(fixture, 2, 500);
	assert_int_equal(capture_writer_range(fixture->writer, &event), 0);
	finish(fixture);
	check_windows(fixture, "range 1 outer", (bool[]){1, 1, 1, 1});
	check_windows(fixture, "range 1 inner", (bool[]){1, 1, 0, 0});
}

static void test_waits_are_cut(void **state)
{
	struct fixture *fixture = *state;
	const struct capture_sample wait = {.time_ns = moment(fixture, 3, 500),
		.pid = PID,
		.tid = PID,
		.wait = WIRE_WAIT_POLL,
		.duration_ns = 2 * NS_PER_S,
		.callstack = make_stack(fixture, "read", 0x30)};

	assert_int_equal(capture_writer_sample(fixture->writer, &wait), 0);
	finish(fixture);
	check_windows(fixture, "poll=", (bool[]){1, 1, 1, 0});
	check_windows(fixture, "poll=499999999", (bool[]){1, 0, 0, 0});
	check_windows(fixture, "poll=500000000", (bool[]){0, 0, 1, 0});
}

/* The second launch has the stack of the first, which is in an earlier window. */
static void test_stacks_of_launches(void **state)
{
	struct fixture *fixture = *state;
	struct capture_launch_stack stack = {.time_ns = moment(fixture, 1, 100),
		.pid = PID,
		.tid = PID,
		.correlation = 7,
		.callstack = make_stack(fixture, "launch", 0x40)};

	assert_int_equal(capture_writer_launch_stack(fixture->writer, &stack), 0);
	stack = (struct capture_launch_stack){
		.time_ns = moment(fixture, 3, 100), .pid = PID, .correlation = 8, .same_as = 7};
	assert_int_equal(capture_writer_launch_stack(fixture->writer, &stack), 0);
	finish(fixture);
	check_windows(fixture, "\nlaunch_stack", (bool[]){1, 0, 1, 0});
}

static void test_what_is_known_of_gpus_and_rails(void **state)
{
	struct fixture *fixture = *state;
	const struct capture_device_event gpu = {
		.kind = CAPTURE_GPU, .pid = PID, .text = "a GPU", .gpu.number = 1};
	const struct wire_energy_domain domain = {.id = 1,
		.parent = WIRE_ENERGY_NO_DOMAIN,
		.part = WIRE_ENERGY_GPU,
		.quality = WIRE_ENERGY_COUNTER,
		.name = "gpu0",
		.source = "nvml",
		.device = ""};
	struct capture_device_work work = {.start_ns = moment(fixture, 1, 900),
		.end_ns = moment(fixture, 2, 100),
		.pid = PID,
		.correlation = 1,
		.kind = WIRE_DEVICE_KERNEL,
		.name = "kernel",
		.device = "a GPU"};

	assert_int_equal(capture_writer_energy_domain(fixture->writer, &domain), 0);
	assert_int_equal(capture_writer_device_event(fixture->writer, &gpu), 0);
	assert_int_equal(capture_writer_device_work(fixture->writer, &work), 0);
	add_sample(fixture, moment(fixture, WINDOWS, 10), 0);
	finish(fixture);
	check_windows(fixture, "\nwork ", (bool[]){1, 0, 0, 0});
	for (uint32_t i = 2; i <= WINDOWS; i++) {
		_cleanup_strbuf_ struct strbuf text = {0};

		read_window(fixture, i, &text);
		assert_non_null(strstr(strbuf_cstr(&text), "event a GPU"));
		assert_non_null(strstr(strbuf_cstr(&text), "rail gpu0"));
	}
}

static void test_losses_of_each_window(void **state)
{
	struct fixture *fixture = *state;
	struct capture_loss loss = {.where = "sample_ring", .cpu = 3, .count = 5};
	struct capture_stats stats = {.end_time_ns = moment(fixture, 1, 500),
		.losses = &loss,
		.loss_count = 1,
		.samples_lost = 5,
		.exit_status = -1};

	assert_int_equal(capture_writer_stats(fixture->writer, &stats), 0);
	add_sample(fixture, moment(fixture, 2, 1), 0); /* opens all windows up to now */
	loss.count = stats.samples_lost = 8;
	assert_int_equal(capture_writer_stats(fixture->writer, &stats), 0);
	stats.complete = true;
	assert_int_equal(capture_writer_stats(fixture->writer, &stats), 0);
	assert_int_equal(capture_series_finish(fixture->series), 0);
	check_windows(fixture, "count=5", (bool[]){1, 0, 0, 0});
}

/* Stacks that are used stay, others go; one that is not known any more is counted. */
static void test_stacks_are_forgotten(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct fixture *fixture = *state;
	capture_id kept = make_stack(fixture, "kept", 0x50),
		   gone = make_stack(fixture, "gone", 0x60);

	for (int i = 0; i < 2; i++) {
		capture_writer_renew_callstacks(fixture->writer);
		assert_int_equal(capture_series_renew_callstacks(fixture->series), 0);
		add_sample(fixture, moment(fixture, 1, 10), kept);
	}
	assert_int_not_equal(make_stack(fixture, "another", 0x70), kept);
	add_sample(fixture, moment(fixture, 1, 20), gone);
	finish(fixture);
	assert_int_equal(capture_series_account(fixture->series)->forgotten_stacks, 1);
	read_window(fixture, 1, &text);
	assert_non_null(strstr(strbuf_cstr(&text), "kept"));
	assert_null(strstr(strbuf_cstr(&text), "gone"));
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, make_fixture, free_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_fixture(test_samples_with_their_names),
		with_fixture(test_a_name_that_comes_late),
		with_fixture(test_ranges_are_cut),
		with_fixture(test_waits_are_cut),
		with_fixture(test_stacks_of_launches),
		with_fixture(test_what_is_known_of_gpus_and_rails),
		with_fixture(test_losses_of_each_window),
		with_fixture(test_stacks_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
