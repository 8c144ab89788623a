/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's device records: from the records of a process to the capture, and back out of it. */
#include <math.h>
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
	struct capture_counter counters[16];
	char counter_names[16][64];
	size_t work_count, launch_count, event_count, counter_count;
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

static int see_counter(void *context, const struct capture_counter *counter)
{
	struct seen *seen = context;

	seen->counters[seen->counter_count] = *counter;
	snprintf(seen->counter_names[seen->counter_count], sizeof(*seen->counter_names), "%s",
		counter->name);
	seen->counter_count++;
	return 0;
}

static const struct capture_visitor visitor = {.device_work = see_work,
	.launch = see_launch,
	.device_event = see_event,
	.counter = see_counter};

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

/* When launches were queued and submitted is as far before the start as the device says. */
static void test_launch_times(void **state)
{
	static const struct {
		int64_t queued, submitted; /* before the start; 0: not known */
		uint64_t queued_ns, submit_ns;
		bool has_priority;
		int32_t priority;
	} cases[] = {
		{3000, 1000, 11 * S - 3000, 11 * S - 1000, true, -5},
		{0, 1000, 0, 11 * S - 1000, true, 0}, {3000, 0, 0, 0, true, 7},
		{1000, 3000, 0, 11 * S - 3000, false, 0}, /* queued after it was submitted */
		{3000, -10, 0, 0, true, INT32_MAX},       /* submitted after it began */
		{12 * (int64_t)S, 12 * (int64_t)S, 0, 0, true,
			-INT32_MAX}, /* before the host began */
	};
	struct fixture *fixture = *state;

	tell_clock(fixture, 10 * S, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wire_device_gpu_activity work = kernel(i + 1, 11 * S);
		uint64_t start = work.activity.start;

		work.activity.queued = cases[i].queued ? start - (uint64_t)cases[i].queued : 0;
		work.activity.submit =
			cases[i].submitted ? start - (uint64_t)cases[i].submitted : 0;
		work.has_priority = cases[i].has_priority;
		work.priority = cases[i].priority;
		tell_launch(fixture, i + 1, 11 * S - 2000, WIRE_DEVICE_KERNEL);
		add(fixture, &work);
	}
	tell_clock(fixture, 12 * S, 0);
	write_at(fixture, UINT64_MAX);
	assert_int_equal(fixture->seen.work_count, sizeof(cases) / sizeof(*cases));
	for (size_t i = 0; i < fixture->seen.work_count; i++) {
		const struct capture_device_work *work = &fixture->seen.works[i];

		assert_int_equal(work->queued_ns, cases[i].queued_ns);
		assert_int_equal(work->submit_ns, cases[i].submit_ns);
		assert_int_equal(work->priority != 0, cases[i].has_priority);
		if (work->priority)
			assert_int_equal(capture_priority_value(work->priority), cases[i].priority);
	}
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

/* By the device: no launch is theirs, nor looked for; what was not timed is counted. */
static void test_graphs_launched_by_the_device(void **state)
{
	struct fixture *fixture = *state;

	tell_clock(fixture, 10 * S, 0);
	tell_launch(fixture, 5, 11 * S - 100, WIRE_DEVICE_GRAPH);
	for (uint32_t i = 0; i < 4; i++) {
		struct wire_device_gpu_activity graph = kernel(i ? 0 : 5, 11 * S + i * 2000);

		graph.activity.kind = WIRE_DEVICE_GRAPH;
		graph.graph = 20 + i;
		graph.launcher = i == 2 ? WIRE_LAUNCHER_UNKNOWN : i ? 20 : 0;
		graph.untimed = i == 3 ? WIRE_DEVICE_NO_TIMES : WIRE_DEVICE_TIMED;
		add(fixture, &graph);
	}
	write_at(fixture, UINT64_MAX);
	assert_int_equal(fixture->seen.launch_count, 1);
	assert_int_equal(fixture->seen.work_count, 3);
	assert_int_equal(account(fixture)->untimed, 1);
	for (size_t i = 0; i < 3; i++) {
		const struct capture_device_work *work = &fixture->seen.works[i];

		assert_int_equal(work->graph, 20 + i);
		assert_int_equal(work->correlation, i ? 0 : 5);
		assert_int_equal(work->launcher, i == 2 ? WIRE_LAUNCHER_UNKNOWN : i ? 20 : 0);
		assert_int_equal(work->registers, 0);
	}
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

	struct wire_device_sync sync = {
		.record = {.type = WIRE_RECORD_DEVICE_SYNC, .length_bytes = sizeof(sync)},
		.start = 2,
		.end = 1,
		.sync = WIRE_SYNC_STREAM,
	};
	struct wire_device_call call = {
		.record = {.type = WIRE_RECORD_DEVICE_CALL, .length_bytes = sizeof(call)},
		.enter_ns = 1,
		.exit_ns = 2,
		.text_bytes = 8,
	};

	struct wire_device_unified unified = {
		.record = {.type = WIRE_RECORD_DEVICE_UNIFIED, .length_bytes = sizeof(unified)},
		.start = S + OFFSET,
		.type = WIRE_UNIFIED_MAX,
	};

	add(fixture, &memory); /* before any pair of clocks */
	add(fixture, &sync);
	sync.start = 0;
	sync.sync = WIRE_SYNC_MAX;
	add(fixture, &sync);
	add(fixture, &call); /* its name lies beyond it */
	call.text_bytes = 0;
	call.exit_ns = 0;
	add(fixture, &call);
	tell_clock(fixture, 10 * S, 0);
	add(fixture, &unified);
	unified.type = WIRE_UNIFIED_HOST_FAULT;
	unified.cause = 1; /* it has none */
	add(fixture, &unified);
	unified.type = WIRE_UNIFIED_TO_HOST;
	unified.cause = WIRE_MIGRATION_MAX;
	add(fixture, &unified);
	unified.cause = WIRE_MIGRATION_USER;
	unified.end = unified.start - 1;
	add(fixture, &unified);
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
	assert_int_equal(account(fixture)->malformed, 16);
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
	.launcher = WIRE_LAUNCHER_UNKNOWN,
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
	{.kind = CAPTURE_DEVICE_SYNC,
		.pid = PID,
		.time_ns = 10,
		.sync = {.type = WIRE_SYNC_WAIT,
			.event_sync = 1ULL << 63,
			.stream = WIRE_SYNC_NO_STREAM}},
	{.kind = CAPTURE_DEVICE_CALL,
		.pid = PID,
		.time_ns = 11,
		.text = "cudaEventRecord",
		.call = {.tid = 7, .duration_ns = 5, .failed = 1}},
	{.kind = CAPTURE_PC_TEXT, .pid = PID, .text = "gemm", .pc_text = {.id = 1U << 31 | 3}},
	{.kind = CAPTURE_PC,
		.pid = PID,
		.time_ns = 12,
		.pc = {.cubin = 1ULL << 63,
			.pc_offset = 0x110,
			.samples = 5,
			.not_issued = 4,
			.function = 1U << 31 | 3,
			.reason = 2,
			.line = 12}},
	{.kind = CAPTURE_PC_COUNTS,
		.pid = PID,
		.time_ns = 13,
		.pc_counts = {.samples = 9, .full_reads = 1, .period_cycles = 4096}},
	{.kind = CAPTURE_UNIFIED_MEMORY,
		.pid = PID,
		.time_ns = 12,
		.unified = {.duration_ns = 7,
			.address = 1ULL << 47,
			.value = 65536,
			.devices = 3,
			.from = 1,
			.to = 2,
			.type = WIRE_UNIFIED_BETWEEN_DEVICES,
			.cause = WIRE_MIGRATION_EVICTION,
			.on_host = 1}},
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

/* Of an event, and of a stream that need not wait, no time is known; they are kept all the same. */
static void test_waits_without_times(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_sync sync = {
		.record = {.type = WIRE_RECORD_DEVICE_SYNC, .length_bytes = sizeof(sync)},
		.correlation = 3,
		.stream = 8,
		.sync = WIRE_SYNC_WAIT,
	};

	tell_clock(fixture, 10 * S, 0);
	add(fixture, &sync);
	sync.sync = WIRE_SYNC_STREAM;
	sync.start = 9 * S + OFFSET;
	sync.end = sync.start + 100;
	add(fixture, &sync);
	tell_clock(fixture, 11 * S, 0);
	write_at(fixture, UINT64_MAX);
	assert_int_equal(account(fixture)->malformed, 0);
	for (size_t i = 0, found = 0; i < fixture->seen.event_count; i++) {
		const struct capture_device_event *event = &fixture->seen.events[i];

		if (event->kind != CAPTURE_DEVICE_SYNC)
			continue;
		assert_int_equal(event->sync.stream, 8);
		assert_int_equal(event->time_ns, found ? 9 * S : 0);
		assert_int_equal(event->sync.duration_ns, found ? 100 : 0);
		found++;
	}
}

/* A text is written once, before what has its id; what no honest process writes is left out. */
static void test_instructions(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_pc pc = {
		.record = {.type = WIRE_RECORD_DEVICE_PC, .length_bytes = sizeof(pc)},
		.time_ns = 10 * S,
		.pc_offset = 0x20,
		.samples = 7,
		.not_issued = 7,
		.function = NAME,
		.reason = NAME,
		.file = 99, /* never defined */
		.line = 3,
	};
	size_t texts = 0, pcs = 0;

	define(fixture, WIRE_RECORD_DEVICE_NAME, NAME, "gemm");
	add(fixture, &pc);
	pc.pc_offset = 0x30;
	add(fixture, &pc);
	pc.not_issued = 8;
	add(fixture, &pc);
	pc.not_issued = 0;
	pc.time_ns = 0;
	add(fixture, &pc);
	write_at(fixture, UINT64_MAX);
	assert_int_equal(account(fixture)->malformed, 2);
	for (size_t i = 0; i < fixture->seen.event_count; i++) {
		const struct capture_device_event *event = &fixture->seen.events[i];

		texts += event->kind == CAPTURE_PC_TEXT;
		if (event->kind != CAPTURE_PC)
			continue;
		assert_int_equal(texts, 1);
		assert_int_equal(event->pc.pc_offset, pcs++ ? 0x30 : 0x20);
		assert_int_equal(event->pc.function, NAME);
		assert_int_equal(event->pc.file, 0);
	}
	assert_int_equal(pcs, 2);
}

/* As headers of CUDA spell them, not as its libraries do. */
static void test_names_of_calls(void **state)
{
	static const char *const names[][2] = {
		{"cuMemAlloc_v2", "cuMemAlloc"},
		{"cudaMallocAsync_ptsz_v11020", "cudaMallocAsync"},
		{"cuMemFreeAsync_ptsz", "cuMemFreeAsync"},
		{"cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"},
		{"cudaGraphExecMemcpyNodeSetParams1D", "cudaGraphExecMemcpyNodeSetParams1D"},
		{"cuMemsetD2D32", "cuMemsetD2D32"},
		{"_v2", "_v2"},
		{"v2", "v2"},
		{"_ptsz", "_ptsz"},
		{"a_v2_v3", "a"},
		{"", ""},
	};
	struct fixture *fixture = *state;
	size_t found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct {
			struct wire_device_call call;
			char text[40];
		} out = {
			.call = {.record = {.type = WIRE_RECORD_DEVICE_CALL,
					 .length_bytes = sizeof(out)},
				.enter_ns = 10 * S + i,
				.exit_ns = 11 * S,
				.text_bytes = (__u32)strlen(names[i][0])},
		};

		memcpy(out.text, names[i][0], strlen(names[i][0]));
		add(fixture, &out);
	}
	write_at(fixture, UINT64_MAX);
	assert_int_equal(account(fixture)->malformed, 0);
	for (size_t i = 0; i < fixture->seen.event_count; i++) {
		if (fixture->seen.events[i].kind == CAPTURE_DEVICE_CALL)
			assert_string_equal(fixture->seen.texts[i], names[found++][1]);
	}
	assert_int_equal(found, ARRAY_SIZE(names));
}

static void test_unified_memory(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_unified unified = {
		.record = {.type = WIRE_RECORD_DEVICE_UNIFIED, .length_bytes = sizeof(unified)},
		.start = 9 * S + OFFSET,
		.end = 9 * S + OFFSET + 100,
		.address = 0x7000,
		.value = 4096,
		.to = WIRE_DEVICE_IDS_OF(8) + 1,
		.type = WIRE_UNIFIED_TO_DEVICE,
		.cause = WIRE_MIGRATION_USER,
	};
	size_t found = 0;

	tell_clock(fixture, 8 * S, 0);
	add(fixture, &unified);
	unified.end = 0;
	unified.to = unified.cause = 0;
	unified.type = WIRE_UNIFIED_HOST_FAULT;
	add(fixture, &unified);
	tell_clock(fixture, 11 * S, 0);
	write_at(fixture, UINT64_MAX);
	assert_int_equal(account(fixture)->malformed, 0);
	for (size_t i = 0; i < fixture->seen.event_count; i++) {
		const struct capture_device_event *event = &fixture->seen.events[i];

		if (event->kind != CAPTURE_UNIFIED_MEMORY)
			continue;
		assert_int_equal(event->time_ns, 9 * S);
		assert_int_equal(event->unified.duration_ns, found ? 0 : 100);
		assert_int_equal(event->unified.to, found ? 0 : 1);
		assert_int_equal(event->unified.value, 4096);
		found++;
	}
	assert_int_equal(found, 2);
}

static struct wire_device_pm counted(uint64_t start)
{
	struct wire_device_pm record = {
		.record = {.type = WIRE_RECORD_DEVICE_PM, .length_bytes = sizeof(record)},
		.start = start + OFFSET,
		.end = start + OFFSET + 1000,
		.device = WIRE_DEVICE_IDS_OF(8) + 2,
	};
	const double nan = NAN;

	for (size_t i = 0; i < WIRE_PM_MAX; i++)
		memcpy(&record.values[i], &nan, sizeof(nan));
	return record;
}

static void set_value(struct wire_device_pm *record, enum wire_pm_counter counter, double value)
{
	memcpy(&record->values[counter], &value, sizeof(value));
}

/* What was not counted is no value; what cannot be is counted as malformed. */
static void test_counters(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_pm record = counted(9 * S);
	const struct seen *seen = &fixture->seen;

	set_value(&record, WIRE_PM_SM_BUSY, 62.5);
	set_value(&record, WIRE_PM_PCIE_WRITE_BYTES, 5e9);
	set_value(&record, WIRE_PM_NVLINK_SENT_BYTES, INFINITY);
	add(fixture, &record); /* before any pair of clocks */
	tell_clock(fixture, 8 * S, 0);
	add(fixture, &record);
	record.end = record.start;
	add(fixture, &record);
	record.end = UINT64_MAX;
	add(fixture, &record);
	record = counted(9 * S);
	record.device = 1; /* of no runtime */
	add(fixture, &record);
	record = counted(9 * S);
	record.record.length_bytes -= 8;
	add(fixture, &record);
	tell_clock(fixture, 11 * S, 0);
	write_at(fixture, UINT64_MAX);
	assert_int_equal(account(fixture)->malformed, 5);
	assert_int_equal(seen->counter_count, 2);
	assert_string_equal(seen->counter_names[0], "GPU 1 SM busy (%)");
	assert_string_equal(seen->counter_names[1], "GPU 1 PCIe write (GB/s)");
	assert_true(seen->counters[0].value == 62.5 && seen->counters[1].value == 5);
	assert_int_equal(seen->counters[0].time_ns, 9 * S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unified_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_counters, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_any_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_waits_without_times, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_instructions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names_of_calls, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_launch_times, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late_launches, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_graph_launch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_graphs_launched_by_the_device, set_up, tear_down),
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
