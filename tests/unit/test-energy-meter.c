/* SPDX-License-Identifier: Apache-2.0 */
/* From readings to intervals: wraps, steps, gaps. Clocks are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/macros.h"
#include "sources/energy/meter.h"

#define MS        NS_PER_MS
#define INTEL_UJ  262143328850ULL
#define AMD_UJ    65532610987ULL
#define TICK      (10 * MS)
#define JOULES_UJ 1000000ULL

struct run {
	struct energy_rail rail;
	struct energy_meter meter;
	uint64_t sleep_ns, took_ns;
	struct wire_energy_interval last;
	unsigned intervals, gaps;
	uint64_t energy_nj;
};

static void begin(struct run *run, enum energy_kind kind, uint64_t range, bool is_fast)
{
	*run = (struct run){
		.rail = {.kind = kind, .range = range, .nj_per_unit = 1000, .implausible_w = 2000}};
	energy_meter_init(&run->meter, &run->rail, is_fast, TICK);
}

static bool add_reading(struct run *run, uint64_t time_ms, uint64_t value, int error)
{
	struct energy_reading reading = {.time_ns = time_ms * MS, .value = value, .error = error};
	struct wire_energy_interval interval;

	if (!energy_meter_add(&run->meter, &reading, run->took_ns, run->sleep_ns, &interval))
		return false;
	assert_true(interval.end_ns > interval.start_ns);
	if (run->intervals + run->gaps) /* one after the other, with nothing between */
		assert_true(interval.start_ns == run->last.end_ns);
	if (interval.gap)
		assert_true(interval.energy_nj == 0);
	run->last = interval;
	run->gaps += interval.gap != 0;
	run->intervals += interval.gap == 0;
	run->energy_nj += interval.energy_nj;
	return true;
}

static bool add(struct run *run, uint64_t time_ms, uint64_t value)
{
	return add_reading(run, time_ms, value, 0);
}

static void check_wrap(uint64_t range)
{
	struct run run;

	begin(&run, ENERGY_COUNTER, range, true);
	add(&run, 0, range - 3 * JOULES_UJ);
	add(&run, 10, range - 2 * JOULES_UJ);
	assert_true(add(&run, 1010, 1 * JOULES_UJ));
	assert_int_equal(run.last.gap, WIRE_ENERGY_NO_GAP);
	assert_true(run.last.energy_nj == 3 * NS_PER_S);
}

static void test_wraps_of_intel_and_amd(void **state _unused_)
{
	check_wrap(INTEL_UJ);
	check_wrap(AMD_UJ);
}

static void test_two_wraps_are_no_energy(void **state _unused_)
{
	struct run run;

	/* At 2 kW the range is through in 33 s: after 40 s nobody knows how often. */
	begin(&run, ENERGY_COUNTER, AMD_UJ, true);
	add(&run, 0, 0);
	add(&run, 10, JOULES_UJ);
	assert_true(add(&run, 40010, 100 * JOULES_UJ));
	assert_int_equal(run.last.gap, WIRE_ENERGY_IMPLAUSIBLE);
	assert_true(add(&run, 40020, 101 * JOULES_UJ));
	assert_true(run.last.energy_nj == NS_PER_S);
}

static void test_ten_seconds_late_is_right_all_the_same(void **state _unused_)
{
	struct run run;

	begin(&run, ENERGY_COUNTER, INTEL_UJ, true);
	add(&run, 0, 0);
	add(&run, 10, JOULES_UJ);
	assert_true(add(&run, 10010, 501 * JOULES_UJ));
	assert_int_equal(run.last.gap, WIRE_ENERGY_NO_GAP);
	assert_true(run.last.energy_nj == 500 * NS_PER_S);
}

/* A failed read that counts as 0 looks like a wrap, and adds 262 kJ. */
static void test_failed_read_is_a_gap(void **state _unused_)
{
	static const int errors[] = {-EIO, -EACCES, -EINVAL, -ENODEV};

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct run run;

		begin(&run, ENERGY_COUNTER, INTEL_UJ, true);
		add(&run, 0, 100 * JOULES_UJ);
		add(&run, 10, 101 * JOULES_UJ);
		assert_false(add_reading(&run, 20, 0, errors[i]));
		assert_false(add_reading(&run, 30, 0, errors[i]));
		assert_false(add(&run, 40, 103 * JOULES_UJ));
		assert_true(add(&run, 50, 104 * JOULES_UJ));
		assert_int_equal(run.last.gap, WIRE_ENERGY_READ_FAILED);
		assert_true(run.last.start_ns == 10 * MS && run.last.end_ns == 50 * MS);
		assert_true(add(&run, 60, 105 * JOULES_UJ));
		assert_true(run.energy_nj == NS_PER_S);
	}
}

static void test_back_and_too_far_are_gaps(void **state _unused_)
{
	struct run run;

	begin(&run, ENERGY_COUNTER, 0, true);
	add(&run, 0, 100 * JOULES_UJ);
	add(&run, 10, 101 * JOULES_UJ);
	assert_true(add(&run, 20, JOULES_UJ));
	assert_int_equal(run.last.gap, WIRE_ENERGY_WENT_BACK);
	assert_true(add(&run, 30, 2 * JOULES_UJ));
	assert_true(run.last.energy_nj == NS_PER_S);
	assert_true(add(&run, 40, 1000 * JOULES_UJ));
	assert_int_equal(run.last.gap, WIRE_ENERGY_IMPLAUSIBLE);
	/* A counter with a range that was set to 0 is no wrap either: it would be too much. */
	begin(&run, ENERGY_COUNTER, INTEL_UJ, true);
	add(&run, 0, 100 * JOULES_UJ);
	add(&run, 10, 101 * JOULES_UJ);
	assert_true(add(&run, 20, 0));
	assert_int_equal(run.last.gap, WIRE_ENERGY_IMPLAUSIBLE);
}

static void test_suspend_is_a_gap(void **state _unused_)
{
	struct run run;

	for (int kind = ENERGY_COUNTER; kind <= ENERGY_POWER; kind++) {
		begin(&run, kind, INTEL_UJ, true);
		run.sleep_ns = 7 * NS_PER_S;
		add(&run, 0, 100 * JOULES_UJ);
		add(&run, 10, 101 * JOULES_UJ);
		run.sleep_ns += 3600 * NS_PER_S;
		add(&run, 20, 102 * JOULES_UJ);
		add(&run, 30, 103 * JOULES_UJ);
		assert_int_equal(run.gaps, 1);
		add(&run, 40, 104 * JOULES_UJ);
		assert_int_equal(run.gaps, 1);
	}
}

static void test_late_answer_is_a_gap(void **state _unused_)
{
	struct run run;

	begin(&run, ENERGY_COUNTER, INTEL_UJ, true);
	add(&run, 0, 100 * JOULES_UJ);
	add(&run, 10, 101 * JOULES_UJ);
	run.took_ns = 3 * NS_PER_S;
	assert_false(add(&run, 1510, 110 * JOULES_UJ));
	run.took_ns = 0;
	assert_false(add(&run, 3020, 120 * JOULES_UJ));
	assert_true(add(&run, 3030, 121 * JOULES_UJ));
	assert_int_equal(run.last.gap, WIRE_ENERGY_STALLED);
	assert_true(run.last.start_ns == 10 * MS && run.last.end_ns == 3030 * MS);
}

/* A GPU's counter is updated every 100 ms: intervals lie between the steps that were seen. */
static void test_slow_counter_has_intervals_between_steps(void **state _unused_)
{
	struct run run;

	begin(&run, ENERGY_COUNTER, 0, false);
	for (uint64_t ms = 7; ms < 3000; ms += 10)
		add(&run, ms, ms / 100 * 30 * JOULES_UJ);
	assert_int_equal(run.gaps, 0);
	assert_true(run.intervals >= 28);
	assert_true(run.energy_nj == run.intervals * 30 * NS_PER_S);
	assert_true(run.last.end_ns - run.last.start_ns == 100 * MS);
	assert_true(energy_meter_period_ns(&run.meter, 20) == 100 * MS);
	/* Not before the first step, which holds what was before. */
	assert_true(run.meter.start_ns % (100 * MS) < 10 * MS);
}

static void test_same_value_for_long(void **state _unused_)
{
	struct run run;

	begin(&run, ENERGY_COUNTER, INTEL_UJ, true);
	add(&run, 0, 100 * JOULES_UJ);
	add(&run, 10, 101 * JOULES_UJ);
	for (uint64_t ms = 20; ms <= 8000; ms += 10)
		assert_false(add(&run, ms, 101 * JOULES_UJ));
	assert_true(add(&run, 8010, 102 * JOULES_UJ));
	assert_int_equal(run.last.gap, WIRE_ENERGY_STALLED);
	/* Of a graphics unit that is switched off that is what it took. */
	begin(&run, ENERGY_COUNTER, INTEL_UJ, true);
	run.rail.may_rest = true;
	for (uint64_t ms = 0; ms <= 20000; ms += 10)
		add(&run, ms, 101 * JOULES_UJ);
	assert_int_equal(run.gaps, 0);
	assert_int_equal(run.intervals, 3);
	assert_true(run.energy_nj == 0);
}

static void test_power_is_integrated(void **state _unused_)
{
	struct run run;

	begin(&run, ENERGY_POWER, 0, false);
	add(&run, 0, 100000000);
	assert_true(add(&run, 100, 300000000)); /* 200 W for 0.1 s */
	assert_true(run.energy_nj == 20 * NS_PER_S);
	assert_true(add(&run, 5000, 300000000)); /* nobody looked meanwhile */
	assert_int_equal(run.last.gap, WIRE_ENERGY_STALLED);
	assert_false(add(&run, 5010, 9000000000000)); /* 9 MW */
	assert_true(add(&run, 5020, 300000000));
	assert_int_equal(run.last.gap, WIRE_ENERGY_IMPLAUSIBLE);
	assert_true(add(&run, 5030, 300000000));
	assert_true(run.energy_nj == 23 * NS_PER_S);
}

static void test_clocks_that_disagree(void **state _unused_)
{
	struct run run;

	begin(&run, ENERGY_COUNTER, INTEL_UJ, true);
	add(&run, 100, 100 * JOULES_UJ);
	add(&run, 110, 101 * JOULES_UJ);
	assert_false(add(&run, 90, 102 * JOULES_UJ));
	assert_false(add(&run, 110, 102 * JOULES_UJ));
	assert_true(add(&run, 120, 103 * JOULES_UJ));
	assert_true(run.last.start_ns == 110 * MS && run.last.energy_nj == 2 * NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wraps_of_intel_and_amd),
		cmocka_unit_test(test_two_wraps_are_no_energy),
		cmocka_unit_test(test_ten_seconds_late_is_right_all_the_same),
		cmocka_unit_test(test_failed_read_is_a_gap),
		cmocka_unit_test(test_back_and_too_far_are_gaps),
		cmocka_unit_test(test_suspend_is_a_gap),
		cmocka_unit_test(test_late_answer_is_a_gap),
		cmocka_unit_test(test_slow_counter_has_intervals_between_steps),
		cmocka_unit_test(test_same_value_for_long),
		cmocka_unit_test(test_power_is_integrated),
		cmocka_unit_test(test_clocks_that_disagree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
