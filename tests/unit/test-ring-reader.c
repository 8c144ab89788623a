/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that empties the rings: all records, in order, and a limit to what waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ring-file.h"
#include "sources/target/ring_reader.h"

#define RECORDS 200000

struct fixture {
	struct target_rings *rings;
	struct ring_reader *reader;
	struct wire_ring_file *file;
	char path[512];
	uint64_t taken, last, disorder;
};

static void pause_us(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct errmsg err;

	assert_non_null(fixture);
	assert_int_equal(
		target_rings_open(&fixture->rings, &(struct target_gate_options){0}, &err), 0);
	fixture->file = make_ring_file(
		target_rings_folder(fixture->rings), fixture->path, sizeof(fixture->path));
	assert_int_equal(ring_reader_start(&fixture->reader, fixture->rings), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	ring_reader_free(fixture->reader);
	target_rings_free(fixture->rings);
	munmap(fixture->file, WIRE_RING_FILE_BYTES);
	free(fixture);
	return 0;
}

static void on_record(void *context, uint32_t pid, const struct wire_record *record)
{
	const struct wire_device_activity *activity = (const void *)record;
	struct fixture *fixture = context;

	fixture->disorder += pid != (uint32_t)getpid() ||
			     record->length_bytes != sizeof(*activity) ||
			     activity->correlation <= fixture->last;
	fixture->last = activity->correlation;
	fixture->taken++;
}

/* Waits for room where there is none: nothing is lost, however slow the machine. */
static void *produce(void *context)
{
	struct wire_device_activity activity = {
		.record = {.type = WIRE_RECORD_DEVICE_ACTIVITY, .length_bytes = sizeof(activity)}};
	struct fixture *fixture = context;

	for (uint64_t i = 1; i <= RECORDS; i++) {
		activity.correlation = i;
		while (!wire_ring_write(&fixture->file->rings[3], wire_ring_data(fixture->file, 3),
			&activity.record))
			pause_us(100);
	}
	return NULL;
}

static void test_all_in_order(void **state)
{
	struct fixture *fixture = *state;
	pthread_t producer;

	assert_int_equal(pthread_create(&producer, NULL, produce, fixture), 0);
	while (fixture->taken < RECORDS / 2) {
		assert_in_range(ring_reader_take(fixture->reader, on_record, fixture), 0, 1);
		pause_us((long)(fixture->taken % 1500));
	}
	while (fixture->taken < RECORDS)
		assert_in_range(ring_reader_take(fixture->reader, on_record, fixture), 0, 1);
	pthread_join(producer, NULL);
	assert_int_equal(fixture->disorder, 0);
	assert_int_equal(fixture->taken, RECORDS);
}

/* What was read when it is stopped is there, and the rest is read by whoever comes next. */
static void test_stopped(void **state)
{
	struct fixture *fixture = *state;
	struct target_rings_account account;

	for (uint64_t i = 1; i <= 100; i++) {
		struct wire_device_activity activity = {
			.record = {.type = WIRE_RECORD_DEVICE_ACTIVITY,
				.length_bytes = sizeof(activity)},
			.correlation = i};

		if (i == 50)
			ring_reader_stop(fixture->reader);
		assert_true(wire_ring_write(&fixture->file->rings[0],
			wire_ring_data(fixture->file, 0), &activity.record));
	}
	ring_reader_stop(fixture->reader);
	ring_reader_take(fixture->reader, on_record, fixture);
	assert_in_range(fixture->taken, 0, 49);
	assert_int_equal(target_rings_drain(fixture->rings, on_record, fixture), 0);
	assert_int_equal(fixture->taken, 100);
	assert_int_equal(fixture->disorder, 0);
	target_rings_account(fixture->rings, &account);
	assert_int_equal(account.records, 100);
}

/* Without it a process with a full ring closes the gate. */
static void await_beat(struct fixture *fixture)
{
	_Atomic __u64 *beat = &target_rings_gate(fixture->rings)->memory->heartbeat_ns;

	atomic_store(beat, 0);
	for (unsigned i = 0; i < 30000 && !atomic_load(beat); i++)
		pause_us(1000);
	assert_true(atomic_load(beat));
}

/*
 * Nobody takes: what waits stays within bounds, and the rings say what they lose. The collector is
 * late then, not dead.
 */
static void test_limit(void **state)
{
	struct wire_device_activity activity = {
		.record = {.type = WIRE_RECORD_DEVICE_ACTIVITY, .length_bytes = sizeof(activity)}};
	struct fixture *fixture = *state;
	struct wire_ring *ring = &fixture->file->rings[0];
	unsigned full_in_a_row = 0;
	uint64_t written = 0;

	/* Full for 200 ms, which is many times what the thread rests. */
	while (written * sizeof(activity) < 40 << 20 &&
		(full_in_a_row < 200 || written * sizeof(activity) < 10 << 20)) {
		activity.correlation = written + 1;
		if (wire_ring_write(ring, wire_ring_data(fixture->file, 0), &activity.record)) {
			written++;
			full_in_a_row = 0;
		} else {
			full_in_a_row++;
			pause_us(1000);
		}
	}
	/* What the thread keeps, what it reads at a time, and what the ring then holds. */
	assert_in_range(written * sizeof(activity), 10 << 20, (15 << 20) + 2 * WIRE_RING_BYTES);
	await_beat(fixture);
	while (fixture->taken < written)
		assert_in_range(ring_reader_take(fixture->reader, on_record, fixture), 0, 1);
	assert_int_equal(fixture->disorder, 0);
}

/* 1 only when the rings were looked at since. */
static void test_take_says_whether_it_read(void **state)
{
	struct fixture *fixture = *state;
	int result;

	do {
		pause_us(1000);
		result = ring_reader_take(fixture->reader, on_record, fixture);
	} while (result == 0);
	assert_int_equal(result, 1);
	ring_reader_stop(fixture->reader);
	ring_reader_take(fixture->reader, on_record, fixture);
	assert_int_equal(ring_reader_take(fixture->reader, on_record, fixture), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stopped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_take_says_whether_it_read, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
