/* SPDX-License-Identifier: Apache-2.0 */
/* The rings between profiled processes and the collector: order, wrapping, fullness, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "wire/device.h"
#include "wire/ring.h"

struct fixture {
	struct wire_ring ring;
	unsigned char *data;
	struct wire_ring_cursor cursor;
};

struct numbered {
	struct wire_record record;
	uint64_t number;
	uint64_t filling[13];
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->data = calloc(1, WIRE_RING_BYTES);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	free(fixture->data);
	free(fixture);
	return 0;
}

static bool put(struct fixture *fixture, uint64_t number, uint32_t length_bytes)
{
	struct numbered record = {
		.record = {.type = WIRE_RECORD_DEVICE_LAUNCH, .length_bytes = length_bytes},
		.number = number,
	};

	return wire_ring_write(&fixture->ring, fixture->data, &record.record);
}

static enum wire_ring_got get(struct fixture *fixture, struct numbered *ret_record)
{
	return wire_ring_read(
		&fixture->ring, fixture->data, &fixture->cursor, ret_record, sizeof(*ret_record));
}

/* Records of many lengths, many times around: none is split, none is lost, all are in order. */
static void test_wraps(void **state)
{
	struct fixture *fixture = *state;
	struct numbered got;

	for (uint64_t i = 0; i < 200000; i++) {
		assert_true(put(fixture, i, 16 + 8 * (uint32_t)(i % 13)));
		assert_int_equal(get(fixture, &got), WIRE_RING_RECORD);
		assert_int_equal(got.number, i);
		assert_int_equal(got.record.length_bytes, 16 + 8 * (i % 13));
	}
	assert_int_equal(get(fixture, &got), WIRE_RING_NOTHING);
	assert_int_equal(atomic_load(&fixture->ring.lost), 0);
}

static void test_full_is_counted(void **state)
{
	struct fixture *fixture = *state;
	struct numbered got;
	uint64_t written = 0;

	while (put(fixture, written, 24))
		written++;
	assert_int_equal(written, (WIRE_RING_AT_FIRST - sizeof(struct wire_record)) / 24);
	assert_false(put(fixture, 0, 24));
	assert_int_equal(atomic_load(&fixture->ring.lost), 2);
	for (uint64_t i = 0; i < written; i++) {
		assert_int_equal(get(fixture, &got), WIRE_RING_RECORD);
		assert_int_equal(got.number, i);
	}
	assert_int_equal(get(fixture, &got), WIRE_RING_NOTHING);
	assert_true(put(fixture, 7, 24));
	assert_int_equal(get(fixture, &got), WIRE_RING_RECORD);
	assert_int_equal(got.number, 7);
}

/* The consumer makes the ring larger while it is in use: what was in it stays in order. */
static void test_grows(void **state)
{
	struct fixture *fixture = *state;
	uint64_t written = 0, read = 0;
	struct numbered got;

	for (uint32_t usable = WIRE_RING_AT_FIRST; usable <= WIRE_RING_BYTES; usable *= 2) {
		atomic_store(&fixture->ring.usable, usable);
		/* Around once and a half, so that each size begins somewhere else. */
		for (uint64_t i = 0; i < usable / 24 * 3 / 2; i++) {
			while (!put(fixture, written, 24)) {
				assert_in_range(
					wire_ring_between(&fixture->ring, fixture->cursor.tail,
						atomic_load(&fixture->ring.head)),
					usable - 64, usable);
				assert_int_equal(get(fixture, &got), WIRE_RING_RECORD);
				assert_int_equal(got.number, read++);
			}
			written++;
		}
	}
	for (; read < written; read++) {
		assert_int_equal(get(fixture, &got), WIRE_RING_RECORD);
		assert_int_equal(got.number, read);
	}
	assert_int_equal(get(fixture, &got), WIRE_RING_NOTHING);
}

/* Only memory that is in use is touched. */
static void test_stays_in_the_usable_part(void **state)
{
	struct fixture *fixture = *state;
	struct numbered got;

	for (uint64_t i = 0; i < 4 * (uint64_t)WIRE_RING_AT_FIRST / 24; i++) {
		assert_true(put(fixture, i, 24));
		assert_int_equal(get(fixture, &got), WIRE_RING_RECORD);
		assert_int_equal(got.number, i);
	}
	for (size_t i = WIRE_RING_AT_FIRST; i < WIRE_RING_BYTES; i++)
		assert_int_equal(fixture->data[i], 0);
}

static void test_damage_is_skipped(void **state)
{
	const uint32_t lengths[] = {0, 4, 12, WIRE_RING_BYTES + 8, UINT32_MAX};
	struct fixture *fixture = *state;
	struct numbered got;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		uint64_t at = atomic_load(&fixture->ring.head) & (WIRE_RING_BYTES - 1);

		assert_true(put(fixture, 1, 24));
		((struct wire_record *)(fixture->data + at))->length_bytes = lengths[i];
		assert_int_equal(get(fixture, &got), WIRE_RING_DAMAGED);
		assert_int_equal(get(fixture, &got), WIRE_RING_NOTHING);
		assert_true(put(fixture, 2, 24));
		assert_int_equal(get(fixture, &got), WIRE_RING_RECORD);
		assert_int_equal(got.number, 2);
	}
}

static void test_impossible_head(void **state)
{
	const uint64_t heads[] = {WIRE_RING_BYTES + 8, UINT64_MAX, 12, 3, 1ULL << 63};
	struct fixture *fixture = *state;
	struct numbered got;

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		atomic_store(&fixture->ring.head, fixture->cursor.tail + heads[i]);
		assert_int_equal(get(fixture, &got), WIRE_RING_DAMAGED);
		assert_int_equal(fixture->cursor.tail % 8, 0);
		atomic_store(&fixture->ring.head, fixture->cursor.tail);
		assert_int_equal(get(fixture, &got), WIRE_RING_NOTHING);
	}
}

static void test_too_long_for_the_reader(void **state)
{
	struct fixture *fixture = *state;
	struct wire_record small;
	struct numbered got;

	assert_true(put(fixture, 1, sizeof(struct numbered)));
	assert_true(put(fixture, 2, 16));
	assert_int_equal(wire_ring_read(&fixture->ring, fixture->data, &fixture->cursor, &small,
				 sizeof(small)),
		WIRE_RING_DAMAGED);
	assert_int_equal(get(fixture, &got), WIRE_RING_RECORD);
	assert_int_equal(got.number, 2);
}

#define THREADED_RECORDS 300000

static void *produce(void *context)
{
	struct fixture *fixture = context;

	for (uint64_t i = 0; i < THREADED_RECORDS; i++)
		put(fixture, i, 16 + 8 * (uint32_t)(i % 13));
	return NULL;
}

/* Two threads: what comes is in order and whole, and what does not come was counted. */
static void test_two_threads(void **state)
{
	struct fixture *fixture = *state;
	uint64_t received = 0, last = 0;
	struct numbered got;
	pthread_t producer;

	assert_int_equal(pthread_create(&producer, NULL, produce, fixture), 0);
	while (received + atomic_load_explicit(&fixture->ring.lost, memory_order_relaxed) <
		THREADED_RECORDS) {
		enum wire_ring_got what = get(fixture, &got);

		assert_int_not_equal(what, WIRE_RING_DAMAGED);
		if (what != WIRE_RING_RECORD)
			continue;
		assert_true(received == 0 || got.number > last);
		assert_int_equal(got.record.length_bytes, 16 + 8 * (got.number % 13));
		last = got.number;
		received++;
	}
	pthread_join(producer, NULL);
	assert_int_equal(get(fixture, &got), WIRE_RING_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_wraps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_is_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_grows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stays_in_the_usable_part, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damage_is_skipped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_impossible_head, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_long_for_the_reader, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_two_threads, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
