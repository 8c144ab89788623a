/* SPDX-License-Identifier: Apache-2.0 */
/* Device work: from the records of a process to the capture, and back out of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/device/device.h"

#define PID    77
#define OFFSET 1000000000ULL /* device + OFFSET = host */

struct seen {
	struct capture_device_work works[64];
	char names[64][32], devices[64][32];
	size_t count, launches;
	struct capture_launch launch;
};

static int see_work(void *context, const struct capture_device_work *work)
{
	struct seen *seen = context;

	seen->works[seen->count] = *work;
	snprintf(seen->names[seen->count], 32, "%s", work->name ? work->name : "[none]");
	snprintf(seen->devices[seen->count], 32, "%s", work->device);
	seen->count++;
	return 0;
}

static int see_launch(void *context, const struct capture_launch *launch)
{
	struct seen *seen = context;

	seen->launch = *launch;
	seen->launches++;
	return 0;
}

static const struct capture_visitor visitor = {.device_work = see_work, .launch = see_launch};

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

static void define(struct fixture *fixture, uint16_t type, uint32_t id, const char *text)
{
	struct {
		struct wire_device_definition definition;
		char text[32];
	} record = {
		.definition = {.record = {.type = type, .length_bytes = sizeof(record)},
			.id = id,
			.text_bytes = (uint32_t)strlen(text)},
	};

	memcpy(record.text, text, strlen(text));
	assert_int_equal(
		device_collector_add(fixture->collector, PID, &record.definition.record), 0);
}

/* A kernel that is queued `wait_ns` after the call began, in a call of `width_ns`. */
static struct wire_device_activity activity_at(
	uint64_t host_ns, uint64_t wait_ns, uint64_t width_ns)
{
	uint64_t queued = host_ns + wait_ns - OFFSET;

	return (struct wire_device_activity){
		.record = {.type = WIRE_RECORD_DEVICE_ACTIVITY,
			.length_bytes = sizeof(struct wire_device_activity)},
		.correlation = host_ns,
		.queued = queued,
		.submit = queued + 10,
		.start = queued + 1000,
		.end = queued + 3000,
		.before_ns = host_ns,
		.after_ns = host_ns + width_ns,
		.enter_ns = host_ns - 5,
		.device = 1,
		.queue = 2,
		.name = 3,
		.tid = 78,
		.kind = WIRE_DEVICE_KERNEL,
		.global_size = {64, 2, 1},
		.local_size = {8, 1, 1},
	};
}

static void add(struct fixture *fixture, const struct wire_device_activity *activity)
{
	assert_int_equal(device_collector_add(fixture->collector, PID, &activity->record), 0);
}

static void test_names_and_times(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_activity activity = activity_at(5 * OFFSET, 100, 200);

	add(fixture, &activity); /* before its names, as rings are read in any order */
	define(fixture, WIRE_RECORD_DEVICE_DEVICE, 1, "a device");
	define(fixture, WIRE_RECORD_DEVICE_NAME, 3, "a kernel");
	assert_int_equal(device_collector_write(fixture->collector, UINT64_MAX), 0);
	assert_int_equal(fixture->seen.count, 1);
	assert_string_equal(fixture->seen.names[0], "a kernel");
	assert_string_equal(fixture->seen.devices[0], "a device");
	assert_int_equal(fixture->seen.works[0].start_ns, 5 * OFFSET + 100 + 1000);
	assert_int_equal(fixture->seen.works[0].end_ns, 5 * OFFSET + 100 + 3000);
	assert_int_equal(fixture->seen.works[0].tid, 78);
	assert_int_equal(fixture->seen.works[0].launch_ns, 5 * OFFSET);
	assert_int_equal(fixture->seen.works[0].launch_duration_ns, 200);
}

/* A wide bracket (a blocking call) is narrowed by the calls before and after it. */
static void test_clocks_narrow_each_other(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_activity wide = activity_at(5 * OFFSET, 50, 1000000);
	struct wire_device_activity early = activity_at(5 * OFFSET + 2000000, 0, 800);
	struct wire_device_activity late = activity_at(5 * OFFSET + 3000000, 800, 800);

	add(fixture, &wide);
	add(fixture, &early);
	add(fixture, &late);
	assert_int_equal(device_collector_write(fixture->collector, UINT64_MAX), 0);
	assert_int_equal(fixture->seen.count, 3);
	/* 0.1 ns of drift in each µs apart. */
	assert_in_range(
		fixture->seen.works[0].start_ns, 5 * OFFSET + 1050 - 600, 5 * OFFSET + 1050 + 600);
	assert_in_range(device_collector_account(fixture->collector)->clock_error_ns, 0, 700);
	assert_int_equal(device_collector_account(fixture->collector)->started_before_launch, 0);
}

static void test_a_jump_begins_anew(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_activity before = activity_at(5 * OFFSET, 100, 200);
	struct wire_device_activity after = activity_at(6 * OFFSET, 100, 200);

	after.queued += 500000000;
	after.submit += 500000000;
	after.start += 500000000;
	after.end += 500000000;
	add(fixture, &before);
	assert_int_equal(device_collector_write(fixture->collector, UINT64_MAX), 0);
	add(fixture, &after);
	assert_int_equal(device_collector_write(fixture->collector, UINT64_MAX), 0);
	assert_int_equal(fixture->seen.works[1].start_ns, 6 * OFFSET + 1100);
}

/* Waits for a better clock, but no longer than a second. */
static void test_wide_work_waits(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_activity wide = activity_at(5 * OFFSET, 50, 1000000);

	wide.name = 0;
	add(fixture, &wide);
	assert_int_equal(device_collector_write(fixture->collector, wide.after_ns + 1000), 0);
	assert_int_equal(fixture->seen.count, 0);
	assert_int_equal(device_collector_write(fixture->collector, wide.after_ns + 2 * OFFSET), 0);
	assert_int_equal(fixture->seen.count, 1);
}

static void test_malformed_is_dropped(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_activity good = activity_at(5 * OFFSET, 100, 200), bad;
	struct wire_record unknown = {.type = 999, .length_bytes = 8};

	bad = good;
	bad.record.length_bytes = 64;
	add(fixture, &bad);
	bad = good;
	bad.start = bad.end + 1;
	add(fixture, &bad);
	bad = good;
	bad.kind = WIRE_DEVICE_MAX;
	add(fixture, &bad);
	bad = good;
	bad.before_ns = bad.after_ns + 1;
	add(fixture, &bad);
	assert_int_equal(device_collector_add(fixture->collector, PID, &unknown), 0);
	assert_int_equal(device_collector_write(fixture->collector, UINT64_MAX), 0);
	assert_int_equal(fixture->seen.count, 0);
	assert_int_equal(device_collector_account(fixture->collector)->malformed, 5);
}

static void test_failed_work_is_a_launch(void **state)
{
	struct fixture *fixture = *state;
	struct wire_device_activity failed = activity_at(5 * OFFSET, 100, 200);

	failed.failed = 1;
	failed.end = 0;
	add(fixture, &failed);
	assert_int_equal(fixture->seen.launches, 1);
	assert_int_equal(fixture->seen.launch.untimed, WIRE_DEVICE_FAILED);
	assert_int_equal(device_collector_account(fixture->collector)->untimed, 1);
}

/* ---- through a file ---- */

static void write_capture(const char *path)
{
	const struct capture_device_work work = {
		.start_ns = 1000,
		.end_ns = 1500,
		.queued_ns = 800,
		.submit_ns = 900,
		.launch_ns = 700,
		.launch_duration_ns = 150,
		.pid = PID,
		.tid = 78,
		.correlation = 1ULL << 41,
		.kind = WIRE_DEVICE_KERNEL,
		.name = "a kernel",
		.device = "a device",
		.queue = 9,
		.bytes = 12,
		.global_size = {1ULL << 33, 2, 1},
		.local_size = {8, 4, 1},
	};
	const struct capture_launch wait = {.time_ns = 2000,
		.duration_ns = 30,
		.pid = PID,
		.tid = 78,
		.kind = WIRE_DEVICE_FINISH,
		.queue = 9};
	struct capture_writer *writer;
	struct errmsg err;

	assert_int_equal(capture_writer_open(&writer, path, NULL, &err), 0);
	assert_int_equal(capture_writer_device_work(writer, &work), 0);
	assert_int_equal(capture_writer_launch(writer, &wait), 0);
	assert_int_equal(capture_writer_close(writer, &err), 0);
}

static void test_capture_round_trip(void **state)
{
	char path[] = "/tmp/sonde-test-device-XXXXXX";
	int fd = mkstemp(path);
	struct seen seen = {0};
	struct errmsg err;

	assert_true(fd >= 0);
	write_capture(path);
	assert_int_equal(capture_read(path, &visitor, &seen, NULL, &err), 0);
	remove(path);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.works[0].start_ns, 1000);
	assert_int_equal(seen.works[0].end_ns, 1500);
	assert_int_equal(seen.works[0].queued_ns, 800);
	assert_int_equal(seen.works[0].submit_ns, 900);
	assert_int_equal(seen.works[0].launch_ns, 700);
	assert_int_equal(seen.works[0].launch_duration_ns, 150);
	assert_int_equal(seen.works[0].pid, PID);
	assert_int_equal(seen.works[0].tid, 78);
	assert_int_equal(seen.works[0].correlation, 1ULL << 41);
	assert_int_equal(seen.works[0].kind, WIRE_DEVICE_KERNEL);
	assert_int_equal(seen.works[0].queue, 9);
	assert_int_equal(seen.works[0].bytes, 12);
	assert_int_equal(seen.works[0].global_size[0], 1ULL << 33);
	assert_int_equal(seen.works[0].local_size[1], 4);
	assert_string_equal(seen.names[0], "a kernel");
	assert_string_equal(seen.devices[0], "a device");
	assert_int_equal(seen.launches, 1);
	assert_int_equal(seen.launch.duration_ns, 30);
	assert_int_equal(seen.launch.kind, WIRE_DEVICE_FINISH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names_and_times, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_clocks_narrow_each_other, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_jump_begins_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wide_work_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_malformed_is_dropped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_failed_work_is_a_launch, set_up, tear_down),
		cmocka_unit_test(test_capture_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
