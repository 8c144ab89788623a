/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's device records: from the records of a process to the capture, and back out of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/device/clock.h"
#include "collect/device/device.h"

#define PID    77
#define S      1000000000ULL
#define OFFSET (1000 * S) /* host + OFFSET = device */
#define DEVICE 0x80000001U
#define NAME   0x80000003U

struct seen {
	struct capture_device_work works[64];
	char names[64][1300];
	struct capture_launch launches[64];
	struct capture_device_event events[64];
	char texts[64][64];
	size_t work_count, launch_count, event_count;
};

static int see_work(void *context, const struct capture_device_work *work)
{
	struct seen *seen = context;

	seen->works[seen->work_count] = *work;
	snprintf(seen->names[seen->work_count], sizeof(*seen->names), "%s",
		work->name ? work->name : "[none]");
	seen->work_count++;
	return 0;
}

static int see_launch(void *context, const struct capture_launch *launch)
{
	struct seen *seen = context;

	seen->launches[seen->launch_count++] = *launch;
	return 0;
}

static int see_event(void *context, const struct capture_device_event *event)
{
	struct seen *seen = context;

	seen->events[seen->event_count] = *event;
	snprintf(seen->texts[seen->event_count], sizeof(*seen->texts), "%s",
		event->text ? event->text : "");
	seen->event_count++;
	return 0;
}

static const struct capture_visitor visitor = {
	.device_work = see_work, .launch = see_launch, .device_event = see_event};

struct fixture {
	struct seen seen;
	struct capture_writer *writer;
	struct device_collector *collector;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_int_equal(
		capture_writer_open_live(&fixture->writer, &visitor, &fixture->seen, NULL), 0);
	assert_int_equal(device_collector_new(&fixture->collector, fixture->writer), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	device_collector_free(fixture->collector);
	capture_writer_free(fixture->writer);
	free(fixture);
	return 0;
}

static void add(struct fixture *fixture, const void *record)
{
	assert_int_equal(device_collector_add(fixture->collector, PID, record), 0);
}

static void write_at(struct fixture *fixture, uint64_t now_ns)
{
	assert_int_equal(device_collector_write(fixture->collector, now_ns), 0);
}

static const struct device_account *account(const struct fixture *fixture)
{
	return device_collector_account(fixture->collector);
}

static void define(struct fixture *fixture, uint16_t type, uint32_t id, const char *text)
{
	struct {
		struct wire_device_definition definition;
		char text[WIRE_DEVICE_TEXT_BYTES];
	} record = {
		.definition = {.record = {.type = type, .length_bytes = sizeof(record)},
			.id = id,
			.text_bytes = (uint32_t)strlen(text)},
	};

	memcpy(record.text, text, strlen(text));
	add(fixture, &record);
}

/* Both clocks at a moment of the host's; the device's is `ahead_ns` further ahead than usual. */
static void tell_clock(struct fixture *fixture, uint64_t host_ns, int64_t ahead_ns)
{
	const struct wire_device_clock record = {
		.record = {.type = WIRE_RECORD_DEVICE_CLOCK, .length_bytes = sizeof(record)},
		.monotonic_ns = host_ns,
		.device = host_ns + OFFSET + (uint64_t)ahead_ns,
		.width_ns = 100,
	};

	add(fixture, &record);
}

static void tell_launch(
	struct fixture *fixture, uint64_t correlation, uint64_t enter_ns, uint8_t kind)
{
	const struct wire_device_launch record = {
		.record = {.type = WIRE_RECORD_DEVICE_LAUNCH, .length_bytes = sizeof(record)},
		.correlation = correlation,
		.enter_ns = enter_ns,
		.exit_ns = enter_ns + 500,
		.tid = 78,
		.kind = kind,
	};

	add(fixture, &record);
}

/* A kernel that ran for 1 µs from this moment of the host's on. */
static struct wire_device_gpu_activity kernel(uint64_t correlation, uint64_t host_ns)
{
	return (struct wire_device_gpu_activity){
		.activity = {.record = {.type = WIRE_RECORD_DEVICE_ACTIVITY,
				     .length_bytes = sizeof(struct wire_device_gpu_activity)},
			.correlation = correlation,
			.start = host_ns + OFFSET,
			.end = host_ns + OFFSET + 1000,
			.global_size = {64, 1, 1},
			.local_size = {32, 1, 1},
			.device = DEVICE,
			.queue = DEVICE,
			.name = NAME,
			.kind = WIRE_DEVICE_KERNEL},
		.stream = 7,
		.registers = 40,
		.dynamic_shared_bytes = 512,
	};
}

/* Launches before and after their work; what is joined is written once. */
static void test_any_order(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_gpu_activity first = kernel(1, 11 * S), second = kernel(2, 12 * S);

	tell_clock(fixture, 10 * S, 0);
	define(fixture, WIRE_RECORD_DEVICE_NAME, NAME, "gemm");
	tell_launch(fixture, 1, 11 * S - 2000, WIRE_DEVICE_KERNEL);
	add(fixture, &second);
	add(fixture, &first);
	write_at(fixture, 13 * S);
	assert_int_equal(fixture->seen.work_count, 0); /* no pair of clocks has come after them */
	tell_launch(fixture, 2, 12 * S - 2000, WIRE_DEVICE_KERNEL);
	tell_clock(fixture, 13 * S, 0);
	write_at(fixture, 14 * S);
	assert_int_equal(fixture->seen.work_count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct capture_device_work *work = &fixture->seen.works[i];

		assert_int_equal(work->start_ns, i ? 11 * S : 12 * S);
		assert_int_equal(work->end_ns, work->start_ns + 1000);
		assert_int_equal(work->launch_ns, work->start_ns - 2000);
		assert_int_equal(work->launch_duration_ns, 500);
		assert_int_equal(work->tid, 78);
		assert_int_equal(work->gpu, 1);
		assert_int_equal(work->registers, 40);
		assert_string_equal(fixture->seen.names[i], "gemm");
	}
	write_at(fixture, UINT64_MAX);
	assert_int_equal(fixture->seen.launch_count, 0);
	assert_int_equal(account(fixture)->launches, 2);
	assert_int_equal(account(fixture)->works, 2);
	assert_in_range(account(fixture)->clock_error_ns, 0, 50);
}

/* Work whose launch comes after it was written, and launches without work, for the model to join.
 */
static void test_late_launches(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_gpu_activity orphan = kernel(1, 11 * S);

	tell_clock(fixture, 10 * S, 0);
	add(fixture, &orphan);
	tell_clock(fixture, 12 * S, 0);
	write_at(fixture, 12 * S);
	assert_int_equal(fixture->seen.work_count, 1);
	assert_int_equal(fixture->seen.works[0].launch_ns, 0);
	tell_launch(fixture, 1, 11 * S - 2000, WIRE_DEVICE_KERNEL);
	tell_launch(fixture, 2, 12 * S, WIRE_DEVICE_KERNEL);
	write_at(fixture, 13 * S);
	assert_int_equal(fixture->seen.launch_count, 0);
	write_at(fixture, 30 * S);
	assert_int_equal(fixture->seen.launch_count, 2);
	assert_int_equal(fixture->seen.launches[0].correlation, 1);
	assert_int_equal(fixture->seen.launches[1].untimed, WIRE_DEVICE_TIMED);
}

/* One launch, many works: it is written at once, and stays known. */
static void test_graph_launch(void **state)
{
	struct fixture *fixture = *state;

	tell_clock(fixture, 10 * S, 0);
	tell_launch(fixture, 5, 11 * S - 100, WIRE_DEVICE_GRAPH);
	assert_int_equal(fixture->seen.launch_count, 1);
	for (uint64_t i = 0; i < 3; i++) {
		struct wire_device_gpu_activity node = kernel(5, 11 * S + i * 2000);

		node.graph = 20;
		node.graph_node = 20ULL << 32 | i;
		node.capture = 100 + i;
		add(fixture, &node);
	}
	write_at(fixture, UINT64_MAX);
	assert_int_equal(fixture->seen.work_count, 3);
	assert_int_equal(fixture->seen.works[2].capture, 102);
	assert_int_equal(fixture->seen.works[2].graph_node, 20ULL << 32 | 2);
	assert_int_equal(fixture->seen.launch_count, 1);
}

/* The clock drifts between two pairs, and then jumps. */
static void test_clocks(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_gpu_activity middle = kernel(1, 15 * S), late = kernel(2, 21 * S),
					before = kernel(3, 20 * S + 100);

	tell_clock(fixture, 10 * S, 0);
	tell_clock(fixture, 20 * S, 1000000); /* 100 ppm */
	middle.activity.start += 500000;
	middle.activity.end += 500000;
	add(fixture, &middle);
	before.activity.start += 1000000;
	before.activity.end += 1000000;
	tell_launch(fixture, 3, 20 * S, WIRE_DEVICE_KERNEL);
	add(fixture, &before);
	late.activity.start += 2 * S;
	late.activity.end += 2 * S;
	tell_clock(fixture, 20 * S + S / 2, 2 * (int64_t)S);
	add(fixture, &late);
	tell_clock(fixture, 22 * S, 2 * (int64_t)S);
	write_at(fixture, 22 * S);
	assert_int_equal(fixture->seen.work_count, 3);
	assert_int_equal(fixture->seen.works[0].start_ns, 15 * S);
	/* By the clock as it is now it would have begun 2 s before its launch. */
	assert_int_equal(fixture->seen.works[1].start_ns, 20 * S + 100);
	assert_int_equal(fixture->seen.works[2].start_ns, 21 * S);
	assert_int_equal(account(fixture)->clock_jumps, 1);
	assert_int_equal(account(fixture)->started_before_launch, 0);
}

/* A recording ends; the program goes on. */
static void test_after_the_end(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_gpu_activity ours = kernel(1, 11 * S), launched = kernel(2, 13 * S),
					later = kernel(3, 13 * S);

	tell_clock(fixture, 10 * S, 0);
	tell_launch(fixture, 2, 11 * S, WIRE_DEVICE_KERNEL);
	device_collector_end(fixture->collector, 12 * S);
	add(fixture, &ours);
	add(fixture, &launched);
	add(fixture, &later);
	tell_clock(fixture, 14 * S, 0);
	write_at(fixture, UINT64_MAX);
	assert_int_equal(fixture->seen.work_count, 2);
	assert_int_equal(fixture->seen.works[1].correlation, 2);
}

static void test_names_in_parts(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_gpu_activity long_named = kernel(1, 11 * S);
	char part[WIRE_DEVICE_TEXT_BYTES + 1] = {0};

	memset(part, 'n', WIRE_DEVICE_TEXT_BYTES);
	tell_clock(fixture, 10 * S, 0);
	define(fixture, WIRE_RECORD_DEVICE_NAME, NAME, part);
	define(fixture, WIRE_RECORD_DEVICE_NAME_PART, NAME, part);
	define(fixture, WIRE_RECORD_DEVICE_NAME_PART, NAME, "end");
	add(fixture, &long_named);
	write_at(fixture, UINT64_MAX);
	assert_int_equal(strlen(fixture->seen.names[0]), 2 * WIRE_DEVICE_TEXT_BYTES + 3);
	assert_int_equal(account(fixture)->malformed, 0);
	define(fixture, WIRE_RECORD_DEVICE_NAME_PART, NAME + 1, "of no name");
	assert_int_equal(account(fixture)->malformed, 1);
}

static void test_untimed(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_gpu_activity without = kernel(1, 11 * S);

	without.activity.start = without.activity.end = 0;
	without.untimed = WIRE_DEVICE_NO_TIMES;
	tell_clock(fixture, 10 * S, 0);
	tell_launch(fixture, 1, 11 * S, WIRE_DEVICE_KERNEL);
	add(fixture, &without);
	write_at(fixture, UINT64_MAX);
	assert_int_equal(fixture->seen.work_count, 0);
	assert_int_equal(fixture->seen.launch_count, 1);
	assert_int_equal(fixture->seen.launches[0].untimed, WIRE_DEVICE_NO_TIMES);
	assert_int_equal(fixture->seen.launches[0].time_ns, 11 * S);
	assert_int_equal(account(fixture)->untimed, 1);
}

static void test_notes_and_counts(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_counts counts = {
		.record = {.type = WIRE_RECORD_DEVICE_COUNTS, .length_bytes = sizeof(counts)},
		.time_ns = 10 * S,
		.dropped = 3,
		.repeated = 7,
	};
	const struct device_note *notes;
	size_t count;

	define(fixture, WIRE_RECORD_DEVICE_NOTE, WIRE_NOTE_HELD, "Held.");
	define(fixture, WIRE_RECORD_DEVICE_NOTE, WIRE_NOTE_HELD, "Held.");
	define(fixture, WIRE_RECORD_DEVICE_NOTE, WIRE_NOTE_MAX, "Unknown.");
	add(fixture, &counts);
	add(fixture, &counts); /* nothing new */
	counts.dropped = 5;
	add(fixture, &counts);
	counts.dropped = 2; /* another program of the same process */
	add(fixture, &counts);
	notes = device_collector_notes(fixture->collector, &count);
	assert_int_equal(count, 1);
	assert_string_equal(notes[0].text, "Held.");
	assert_int_equal(notes[0].count, 2);
	assert_int_equal(account(fixture)->dropped, 7);
	assert_int_equal(account(fixture)->malformed, 1);
	assert_int_equal(fixture->seen.event_count, 2 + 3);
}

/* What an honest process does not write is left out, and counted. */
static void test_malformed(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_gpu_activity bad = kernel(1, 11 * S);
	struct wire_device_graph graph = {
		.record = {.type = WIRE_RECORD_DEVICE_GRAPH, .length_bytes = sizeof(graph)},
		.enter_ns = 2,
		.exit_ns = 1,
		.event = WIRE_GRAPH_CREATE,
	};
	struct wire_device_node node = {
		.record = {.type = WIRE_RECORD_DEVICE_NODE, .length_bytes = sizeof(node)},
		.text_bytes = 400,
	};
	struct wire_device_memory memory = {
		.record = {.type = WIRE_RECORD_DEVICE_MEMORY, .length_bytes = sizeof(memory)},
		.time = S,
	};

	add(fixture, &memory); /* before any pair of clocks */
	tell_clock(fixture, 10 * S, 0);
	bad.activity.device = 1;
	add(fixture, &bad);
	bad = kernel(1, 11 * S);
	bad.activity.end = bad.activity.start - 1;
	add(fixture, &bad);
	bad = kernel(1, 11 * S);
	bad.activity.end = UINT64_MAX;
	add(fixture, &bad);
	bad = kernel(1, 11 * S);
	bad.activity.kind = WIRE_DEVICE_WAIT;
	add(fixture, &bad);
	add(fixture, &graph);
	add(fixture, &node);
	node.record.length_bytes = 16;
	add(fixture, &node);
	write_at(fixture, UINT64_MAX);
	assert_int_equal(account(fixture)->malformed, 8);
	assert_int_equal(fixture->seen.work_count, 0);
}

/* Clocks are known to 50 ns: what they have begin 30 ns before its launch began with it. */
static void test_order(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_gpu_activity little = kernel(1, 11 * S), much = kernel(2, 12 * S);

	tell_clock(fixture, 10 * S, 0);
	tell_launch(fixture, 1, 11 * S + 30, WIRE_DEVICE_KERNEL);
	tell_launch(fixture, 2, 12 * S + 300, WIRE_DEVICE_KERNEL);
	add(fixture, &little);
	add(fixture, &much);
	tell_clock(fixture, 13 * S, 0);
	write_at(fixture, 13 * S);
	assert_int_equal(fixture->seen.works[0].start_ns, 11 * S + 30);
	assert_int_equal(fixture->seen.works[0].end_ns, 11 * S + 1030);
	assert_int_equal(fixture->seen.works[1].start_ns, 12 * S);
	assert_int_equal(account(fixture)->started_before_launch, 1);
}

/* However many: what is too much to keep is written, and joined by the model. */
static void test_bounded(void **state)
{
	struct paired_clock clock = {0};
	const struct clock_pair pair = {.host_ns = S, .device = OFFSET, .width_ns = 10};
	const struct device_interval early = {.start = 1, .end = 2};
	struct host_interval host;

	assert_false(paired_clock_convert(&clock, &early, &host));
	for (uint64_t i = 0; i < 10 * DEVICE_CLOCK_PAIRS; i++) {
		struct clock_pair next = pair;

		next.host_ns += i * S;
		next.device += i * S;
		assert_false(paired_clock_add(&clock, &next));
	}
	/* Before all pairs that are kept: by the oldest, and less exactly. */
	assert_true(paired_clock_convert(&clock, &early, &host));
	assert_true(host.error_ns > 1000);
	assert_int_equal(host.end_ns - host.start_ns, 1);
}

/* ---- through a file ---- */

static const struct capture_device_work work = {
	.start_ns = 1000,
	.end_ns = 1500,
	.launch_ns = 700,
	.launch_duration_ns = 150,
	.pid = PID,
	.tid = 78,
	.correlation = 1ULL << 48 | 5,
	.kind = WIRE_DEVICE_KERNEL,
	.name = "gemm",
	.device = "a GPU",
	.queue = DEVICE,
	.global_size = {128, 2, 1},
	.local_size = {32, 1, 1},
	.gpu = 2,
	.context = 1,
	.stream = 7,
	.registers = 40,
	.static_shared_bytes = 1,
	.dynamic_shared_bytes = 2,
	.local_bytes = 3,
	.cluster_size = {4, 5, 6},
	.from_memory = 7,
	.to_memory = 8,
	.graph = 20,
	.graph_node = 20ULL << 32 | 1,
	.capture = 99,
};

static const struct capture_device_event events[] = {
	{.kind = CAPTURE_GPU,
		.pid = PID,
		.text = "a GPU",
		.gpu = {.number = 2, .uuid_low = 1ULL << 63}},
	{.kind = CAPTURE_GRAPH_CALL, .pid = PID, .time_ns = 5, .graph = {.event = 3, .other = 20}},
	{.kind = CAPTURE_GRAPH_NODE,
		.pid = PID,
		.text = "gemm",
		.node = {.node = 9, .node_type = 2}},
	{.kind = CAPTURE_OVERHEAD, .pid = PID, .time_ns = 6, .overhead = {.kind = 1 << 16}},
	{.kind = CAPTURE_MEMORY, .pid = PID, .time_ns = 7, .memory = {.address = 8, .released = 1}},
	{.kind = CAPTURE_DEVICE_COUNTS, .pid = PID, .time_ns = 8, .counts = {.waited_out = 4}},
	{.kind = CAPTURE_DEVICE_NOTE, .pid = PID, .text = "So.", .note = {.note = 4}},
	{.kind = CAPTURE_DEVICE_CLOCK,
		.pid = PID,
		.time_ns = 9,
		.clock = {.device = 1, .width_ns = 3}},
};

#define EVENTS (sizeof(events) / sizeof(*events))

static void test_capture_round_trip(void **state)
{
	char path[] = "/tmp/sonde-test-cuda-XXXXXX";
	int fd = mkstemp(path);
	struct fixture *fixture = *state;
	struct seen *seen = &fixture->seen;
	struct capture_device_work got;
	struct capture_writer *writer;
	struct errmsg err;

	assert_true(fd >= 0);
	assert_int_equal(EVENTS, CAPTURE_DEVICE_EVENT_MAX);
	assert_int_equal(capture_writer_open(&writer, path, NULL, &err), 0);
	assert_int_equal(capture_writer_device_work(writer, &work), 0);
	for (size_t i = 0; i < EVENTS; i++)
		assert_int_equal(capture_writer_device_event(writer, &events[i]), 0);
	assert_int_equal(capture_writer_close(writer, &err), 0);
	assert_int_equal(capture_read(path, &visitor, seen, NULL, &err), 0);
	remove(path);
	got = seen->works[0];
	assert_string_equal(seen->names[0], "gemm");
	got.name = work.name;
	got.device = work.device;
	assert_memory_equal(&got, &work, sizeof(work));
	assert_int_equal(seen->event_count, EVENTS);
	for (size_t i = 0; i < EVENTS; i++) {
		struct capture_device_event event = seen->events[i];

		assert_string_equal(seen->texts[i], events[i].text ? events[i].text : "");
		event.text = events[i].text;
		assert_memory_equal(&event, &events[i], sizeof(event));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_any_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late_launches, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_graph_launch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_clocks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_after_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names_in_parts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_untimed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_notes_and_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_malformed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test_setup_teardown(test_capture_round_trip, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
