/* SPDX-License-Identifier: Apache-2.0 */
/* The perf ring reader over memory that we fill ourselves: wrapping, and contents that make no
 * sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sources/process/perf_ring.h"

#define RING_BYTES 256

struct fixture {
	struct perf_event_mmap_page page;
	_Alignas(8) uint8_t data[RING_BYTES];
	struct perf_ring ring;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	*state = fixture;
	return fixture ? perf_ring_init(&fixture->ring, &fixture->page, fixture->data, RING_BYTES)
		       : -1;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	perf_ring_done(&fixture->ring);
	free(fixture);
	return 0;
}

static void put(struct fixture *fixture, const void *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		fixture->data[fixture->page.data_head++ % RING_BYTES] = ((const uint8_t *)bytes)[i];
}

static void put_record(struct fixture *fixture, uint32_t type, uint16_t size, uint8_t fill)
{
	uint8_t bytes[RING_BYTES];
	struct perf_event_header header = {.type = type, .size = size};

	memset(bytes, fill, sizeof(bytes));
	memcpy(bytes, &header, sizeof(header));
	put(fixture, bytes, size);
}

static void test_reads_in_order(void **state)
{
	struct fixture *fixture = *state;
	const struct perf_event_header *header;

	assert_null(perf_ring_peek(&fixture->ring));
	put_record(fixture, 1, 40, 0xaa);
	assert_null(perf_ring_peek(&fixture->ring)); /* not before an update */
	put_record(fixture, 2, 16, 0xbb);
	perf_ring_update(&fixture->ring);
	header = perf_ring_peek(&fixture->ring);
	assert_int_equal(header->type, 1);
	assert_ptr_equal(header, perf_ring_peek(&fixture->ring));
	assert_int_equal(fixture->page.data_tail, 0);
	perf_ring_consume(&fixture->ring);
	assert_int_equal(fixture->page.data_tail, 40);
	header = perf_ring_peek(&fixture->ring);
	assert_int_equal(header->type, 2);
	perf_ring_consume(&fixture->ring);
	assert_null(perf_ring_peek(&fixture->ring));
	assert_int_equal(fixture->ring.malformed, 0);
	assert_int_equal(fixture->ring.fullest_bytes, 56);
}

/* Every possible place of the ring's end in a record. */
static void test_wrapped_records_are_whole(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t round = 1; round < 200; round++) {
		const struct perf_event_header *header;

		put_record(fixture, round, 72, (uint8_t)round);
		perf_ring_update(&fixture->ring);
		header = perf_ring_peek(&fixture->ring);
		assert_non_null(header);
		assert_int_equal((uintptr_t)header % 8, 0);
		assert_int_equal(header->type, round);
		for (size_t i = sizeof(*header); i < 72; i++)
			assert_int_equal(((const uint8_t *)header)[i], (uint8_t)round);
		perf_ring_consume(&fixture->ring);
	}
	assert_int_equal(fixture->ring.malformed, 0);
}

static void test_hostile_sizes_empty_the_ring(void **state)
{
	struct fixture *fixture = *state;
	static const uint16_t sizes[] = {0, 1, 7, 9, 12, 255, 256, 65535, 65528};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct perf_event_header header = {.type = 1, .size = sizes[i]};

		put(fixture, &header, sizeof(header));
		put_record(fixture, 2, 24, 0);
		perf_ring_update(&fixture->ring);
		assert_null(perf_ring_peek(&fixture->ring));
		assert_int_equal(fixture->ring.malformed, i + 1);
		assert_int_equal(fixture->page.data_tail, fixture->page.data_head);
	}
	/* And it goes on working. */
	put_record(fixture, 3, 24, 0);
	perf_ring_update(&fixture->ring);
	assert_int_equal(perf_ring_peek(&fixture->ring)->type, 3);
}

static void test_hostile_heads_empty_the_ring(void **state)
{
	struct fixture *fixture = *state;
	static const uint64_t steps[] = {RING_BYTES + 8, UINT64_MAX, 4, 1ULL << 40};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		fixture->page.data_head += steps[i];
		perf_ring_update(&fixture->ring);
		assert_null(perf_ring_peek(&fixture->ring));
		assert_int_equal(fixture->ring.malformed, i + 1);
	}
}

static void test_random_bytes(void **state)
{
	struct fixture *fixture = *state;
	const struct perf_event_header *header;
	struct perf_record_id id;
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		for (int i = 0; i < RING_BYTES; i++)
			fixture->data[i] = (uint8_t)(rand_r(&seed) % 7 ? rand_r(&seed) % 64 : 0);
		fixture->page.data_head += (uint64_t)(rand_r(&seed) % 40) * 8;
		perf_ring_update(&fixture->ring);
		while ((header = perf_ring_peek(&fixture->ring))) {
			assert_in_range(header->size, sizeof(*header), RING_BYTES);
			perf_record_id(header, &id);
			perf_record_text(header, 16);
			perf_ring_consume(&fixture->ring);
		}
	}
}

static void test_trailing_fields(void **state)
{
	struct {
		struct perf_event_header header;
		char text[16];
		struct perf_record_id id;
	} record = {{.type = 3, .size = sizeof(record)}, "name", {1, 2, 3, 4, 0}};
	struct perf_record_id id;

	(void)state;
	assert_true(perf_record_id(&record.header, &id));
	assert_memory_equal(&id, &record.id, sizeof(id));
	assert_string_equal(perf_record_text(&record.header, 8), "name");
	assert_null(perf_record_text(&record.header, 24)); /* no room for text */
	assert_null(perf_record_text(&record.header, 200));
	memset(record.text, 'x', sizeof(record.text));
	assert_null(perf_record_text(&record.header, 8));
	record.header.size = 24;
	assert_false(perf_record_id(&record.header, &id));
}

static void test_refuses_odd_sizes(void **state)
{
	struct fixture *fixture = *state;
	struct perf_ring ring = {0};

	assert_int_not_equal(perf_ring_init(&ring, &fixture->page, fixture->data, 100), 0);
	assert_int_not_equal(perf_ring_init(&ring, &fixture->page, fixture->data, 0), 0);
	perf_ring_done(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_reads_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wrapped_records_are_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_hostile_sizes_empty_the_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_hostile_heads_empty_the_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_random_bytes, set_up, tear_down),
		cmocka_unit_test(test_trailing_fields),
		cmocka_unit_test_setup_teardown(test_refuses_odd_sizes, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("perf-ring", tests, NULL, NULL);
}
