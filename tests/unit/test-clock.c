/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of ranges: near the real one, never back, and right again after a counter that jumps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "inject/clock.h"

/* What NTP may change the speed by in a millisecond, and a bad bracket, are far below. */
#define TOLERANCE_NS 20000
#define NTP_NS       500 /* by a change of 500 parts in a million */
#define RUN_NS       30000000ULL
#define SETTLE_NS    5000000ULL
#define THREADS      4

/* Between two looks at the real clock; what is in between may take as long as it likes. */
static void assert_near(struct inject_clock *clock, uint64_t ahead_ns, uint64_t *last_ns)
{
	uint64_t before_ns = inject_now_ns(), now_ns = inject_clock_now(clock),
		 after_ns = inject_now_ns();

	assert_true(now_ns >= *last_ns);
	assert_in_range(now_ns, before_ns - TOLERANCE_NS, after_ns + ahead_ns);
	*last_ns = now_ns;
}

static void *run(void *unused)
{
	struct inject_clock clock = {0};
	uint64_t end_ns = inject_now_ns() + RUN_NS, last_ns = 0;

	while (last_ns < end_ns)
		assert_near(&clock, NTP_NS, &last_ns);
	return NULL;
}

static void test_near_and_never_back(void **state)
{
	pthread_t threads[THREADS];

	inject_clock_open();
	run(NULL);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* Of a machine that was suspended, or moved to another one. */
static void test_jumps(void **state)
{
	const int64_t jumps[] = {INT64_C(1) << 40, -(INT64_C(1) << 40)};
	struct inject_clock clock = {0};
	uint64_t last_ns = 0, end_ns = inject_now_ns() + RUN_NS;

	inject_clock_open();
	while (last_ns < end_ns)
		assert_near(&clock, TOLERANCE_NS, &last_ns);
	for (size_t i = 0; i < sizeof(jumps) / sizeof(*jumps); i++) {
		clock.base_ticks += (uint64_t)jumps[i];
		clock.since_ticks += (uint64_t)jumps[i];
		/* It may have been ahead, and waits. */
		for (end_ns = inject_now_ns() + SETTLE_NS; inject_now_ns() < end_ns;) {
			uint64_t now_ns = inject_clock_now(&clock);

			assert_true(now_ns >= last_ns);
			last_ns = now_ns;
		}
		for (end_ns = inject_now_ns() + RUN_NS; last_ns < end_ns;)
			assert_near(&clock, TOLERANCE_NS, &last_ns);
	}
}

/* Without a steady counter each look is at the real clock. */
static void test_without_a_counter(void **state)
{
	struct inject_clock clock = {0};
	uint64_t before_ns = inject_now_ns();

	for (unsigned i = 0; i < 1000; i++) {
		uint64_t now_ns;

		clock = (struct inject_clock){.base_ns = clock.base_ns};
		now_ns = inject_clock_now(&clock);
		assert_in_range(now_ns, before_ns, inject_now_ns());
		before_ns = now_ns;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_near_and_never_back),
		cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_without_a_counter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
