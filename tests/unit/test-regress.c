/* SPDX-License-Identifier: Apache-2.0 */
/* Slower than the baseline: by more than the threshold, and by more than the spread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/regress.h"
#include "base/map.h"

#define COUNT(values) (sizeof(values) / sizeof((values)[0]))

static void add_steps(
	struct model *model, const char *name, const uint64_t *durations, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct model_step step = {.end_ns = durations[i], .name = name};

		assert_int_equal(array_append(&model->steps, step), 0);
	}
}

static void add_range(
	struct model *model, const char *domain, const char *name, uint64_t duration_ns)
{
	struct model_range range = {.end_ns = duration_ns, .name = name, .domain = domain};

	assert_int_equal(array_append(&model->ranges, range), 0);
}

static void add_kernel(struct model *model, const char *name, uint64_t duration_ns)
{
	struct model_device_work work = {.end_ns = duration_ns, .name = name};

	assert_int_equal(array_append(&model->device_works, work), 0);
}

/* One recording against one. */
static void compare(struct regress *regress, double threshold_percent, const struct model *before,
	const struct model *after)
{
	struct regress_recordings sides[2] = {{{0}}, {{0}}};

	assert_int_equal(
		array_append(&sides[0].items, (struct regress_recording){before, 0, 0}), 0);
	assert_int_equal(array_append(&sides[1].items, (struct regress_recording){after, 0, 0}), 0);
	assert_int_equal(regress_init(regress, threshold_percent, &sides[0], &sides[1]), 0);
	array_done(&sides[0].items);
	array_done(&sides[1].items);
}

static void done(struct model *before, struct model *after, struct regress *regress)
{
	struct model *const models[] = {before, after};

	for (size_t i = 0; i < 2; i++) {
		array_done(&models[i]->steps);
		array_done(&models[i]->ranges);
		array_done(&models[i]->device_works);
	}
	regress_done(regress);
}

static const struct regress_row *row_of(const struct regress *regress, const char *name)
{
	array_foreach (&regress->rows, row) {
		if (strcmp(row->name, name) == 0)
			return row;
	}
	fail_msg("there is no row %s", name);
	return NULL;
}

static void test_blocks(void **state _unused_)
{
	struct model before = {0}, after = {0};
	uint64_t values[100];
	const struct regress_side *side;
	struct regress regress;

	for (size_t i = 0; i < COUNT(values); i++)
		values[i] = i;
	add_steps(&before, "many", values, 100);
	add_steps(&before, "few", values, 5);
	add_steps(&after, "many", values, 100);
	add_steps(&after, "few", values, 1);
	compare(&regress, 10, &before, &after);
	assert_int_equal(regress.blocks, 5);
	side = &row_of(&regress, "many")->before;
	assert_int_equal(side->median_ns, 49);
	assert_int_equal(side->low_ns, 9); /* 0 … 19 */
	assert_int_equal(side->high_ns, 89);
	side = &row_of(&regress, "few")->before;
	assert_int_equal(side->median_ns, 2);
	assert_int_equal(side->blocks, 2);
	assert_int_equal(row_of(&regress, "few")->after.blocks, 1);
	done(&before, &after, &regress);
}

/* Steps that take 100 to 109 now take 120 to 129: slower. The same change within a wide spread:
 * not. */
static void test_spread_decides(void **state _unused_)
{
	struct model before = {0}, after = {0};
	struct regress regress;
	uint64_t tight[2][20], wide[2][20];

	for (size_t i = 0; i < 20; i++) {
		tight[0][i] = 100 + i % 10;
		tight[1][i] = 120 + i % 10;
		wide[0][i] = 50 + 6 * i;
		wide[1][i] = 70 + 6 * i;
	}
	add_steps(&before, "tight", tight[0], 20);
	add_steps(&after, "tight", tight[1], 20);
	add_steps(&before, "wide", wide[0], 20);
	add_steps(&after, "wide", wide[1], 20);
	compare(&regress, 10, &before, &after);
	assert_int_equal(regress.slower, 1);
	assert_int_equal(row_of(&regress, "tight")->verdict, REGRESS_SLOWER);
	assert_int_equal(row_of(&regress, "wide")->verdict, REGRESS_NOISE);
	assert_ptr_equal(row_of(&regress, "tight"), &regress.rows.items[0]);
	done(&before, &after, &regress);
}

static void test_threshold_decides(void **state _unused_)
{
	struct model before = {0}, after = {0};
	struct regress regress;

	for (unsigned i = 0; i < REGRESS_MIN_VALUES; i++) {
		add_kernel(&before, "gemm", 100);
		add_kernel(&after, "gemm", 111);
		add_kernel(&before, "copy", 100);
		add_kernel(&after, "copy", 110);
		add_kernel(&before, "relu", 100);
		add_kernel(&after, "relu", 50);
	}
	compare(&regress, 10, &before, &after);
	assert_int_equal(row_of(&regress, "gemm")->verdict, REGRESS_SLOWER);
	assert_int_equal(row_of(&regress, "copy")->verdict, REGRESS_UNCHANGED);
	assert_int_equal(row_of(&regress, "relu")->verdict, REGRESS_FASTER);
	assert_int_equal(regress.slower, 1);
	done(&before, &after, &regress);
}

/* Once is no measure, and a twentieth of a percent of the time is not worth a failed build. */
static void test_few_and_small_rows_are_not_judged(void **state _unused_)
{
	struct model before = {0}, after = {0};
	struct regress regress;

	for (unsigned i = 0; i < REGRESS_MIN_VALUES; i++) {
		add_kernel(&before, "gemm", 100000);
		add_kernel(&after, "gemm", 100000);
		add_kernel(&before, "small", 50);
		add_kernel(&after, "small", 500);
	}
	add_kernel(&before, "once", 1000000);
	add_kernel(&after, "once", 9000000);
	compare(&regress, 10, &before, &after);
	assert_int_equal(row_of(&regress, "once")->verdict, REGRESS_TOO_FEW);
	assert_int_equal(row_of(&regress, "small")->verdict, REGRESS_TOO_SMALL);
	assert_int_equal(regress.slower, 0);
	assert_int_equal(regress.judged, 1);
	done(&before, &after, &regress);
}

static double uniform(uint64_t *random)
{
	*random = hash_u64(*random + 1);
	return ((double)(*random >> 11) + 0.5) / (double)(1ULL << 53);
}

/* Durations with a long tail, each close to the one before it. */
static void add_simulated(
	struct model *model, const char *name, size_t count, double factor, uint64_t *random)
{
	double close = 0;

	for (size_t i = 0; i < count; i++) {
		double normal =
			sqrt(-2 * log(uniform(random))) * cos(6.283185307 * uniform(random));

		close = 0.3 * close + normal;
		add_kernel(model, name, (uint64_t)(1e6 * factor * exp(0.2 * close)));
	}
}

/*
 * 1,000 comparisons of ten kernels with themselves, 20 to 200 values each: with no threshold at all
 * at most 1 % fail; and a kernel that takes half as long again is found in all of them.
 */
static void test_false_alarms_are_rare(void **state _unused_)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
	uint64_t random = 42;
	size_t alarms = 0, found = 0;

	for (int run = 0; run < 1000; run++) {
		struct model before = {0}, after = {0}, slower = {0};
		struct regress regress;

		for (size_t i = 0; i < COUNT(names); i++) {
			size_t count = 20 * (i + 1);

			add_simulated(&before, names[i], count, 1, &random);
			add_simulated(&after, names[i], count, 1, &random);
			add_simulated(&slower, names[i], count, i == 9 ? 1.5 : 1, &random);
		}
		compare(&regress, 0, &before, &after);
		alarms += regress.slower > 0;
		regress_done(&regress);
		compare(&regress, 10, &before, &slower);
		found += row_of(&regress, "j")->verdict == REGRESS_SLOWER;
		done(&before, &after, &regress);
		array_done(&slower.device_works);
	}
	assert_in_range(alarms, 0, 10);
	assert_int_equal(found, 1000);
	print_message("%zu false alarms of 1,000\n", alarms);
}

static void test_kinds_and_domains_are_apart(void **state _unused_)
{
	struct model before = {0}, after = {0};
	struct regress regress;

	add_range(&before, "torch", "work", 100);
	add_range(&after, "vllm", "work", 200);
	add_kernel(&after, "work", 300);
	add_range(&before, "torch", "same", 7);
	add_range(&after, "torch", "same", 7);
	compare(&regress, 10, &before, &after);
	assert_int_equal(regress.rows.count, 1);
	assert_int_equal(regress.only_before, 1);
	assert_int_equal(regress.only_after, 2);
	assert_string_equal(regress.rows.items[0].domain, "torch");
	done(&before, &after, &regress);
}

/* What was cut off has no duration. */
static void test_cut_steps_and_open_ranges_are_left_out(void **state _unused_)
{
	struct model before = {0}, after = {0};
	struct regress regress;
	uint64_t duration_ns = 100;

	add_steps(&before, "s", &duration_ns, 1);
	add_steps(&after, "s", &duration_ns, 1);
	after.steps.items[0].is_cut = true;
	add_range(&before, "", "r", 100);
	add_range(&after, "", "r", 900);
	after.ranges.items[0].is_open = true;
	compare(&regress, 10, &before, &after);
	assert_int_equal(regress.rows.count, 0);
	assert_int_equal(regress.only_before, 2);
	done(&before, &after, &regress);
}

/* Recordings of `samples` each, 10 ms a sample. */
static void add_recordings(
	struct regress_recordings *side, struct model *model, const uint64_t *samples, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(array_append(&side->items,
					 (struct regress_recording){model, samples[i], 0.01}),
			0);
}

static enum regress_verdict verdict_of_cpu_time(
	const uint64_t *before, size_t before_count, const uint64_t *after, size_t after_count)
{
	struct regress_recordings sides[2] = {{{0}}, {{0}}};
	enum regress_verdict verdict;
	struct model model = {0};
	struct regress regress;

	add_recordings(&sides[0], &model, before, before_count);
	add_recordings(&sides[1], &model, after, after_count);
	assert_int_equal(regress_init(&regress, 10, &sides[0], &sides[1]), 0);
	verdict = row_of(&regress, "CPU time")->verdict;
	regress_done(&regress);
	array_done(&sides[0].items);
	array_done(&sides[1].items);
	return verdict;
}

static void test_cpu_time_needs_significance(void **state _unused_)
{
	assert_int_equal(
		verdict_of_cpu_time(&(uint64_t){100}, 1, &(uint64_t){145}, 1), REGRESS_SLOWER);
	assert_int_equal(
		verdict_of_cpu_time(&(uint64_t){100}, 1, &(uint64_t){130}, 1), REGRESS_NOISE);
	assert_int_equal(
		verdict_of_cpu_time(&(uint64_t){1000}, 1, &(uint64_t){1090}, 1), REGRESS_UNCHANGED);
}

/* The sum says slower; one of the recordings does not. */
static void test_cpu_time_of_each_recording_is_larger(void **state _unused_)
{
	const uint64_t before[] = {1000, 1010, 1500}, after[] = {1400, 1500, 1510};
	const uint64_t slower[] = {1600, 1700, 1800};

	assert_int_equal(verdict_of_cpu_time(before, 3, after, 3), REGRESS_NOISE);
	assert_int_equal(verdict_of_cpu_time(before, 3, slower, 3), REGRESS_SLOWER);
	assert_int_equal(verdict_of_cpu_time(before, 3, slower, 1), REGRESS_SLOWER);
}

#define RUNS 5

/* Recordings of 100 kernels, each slower as a whole by the factor at its place. */
static void compare_runs(struct regress *regress, const double factors[2][RUNS], size_t count)
{
	struct regress_recordings sides[2] = {{{0}}, {{0}}};
	struct model models[2][RUNS] = {0};

	for (size_t i = 0; i < 2 * count; i++) {
		struct model *model = &models[i % 2][i / 2];

		for (size_t j = 0; j < 100; j++)
			add_kernel(model, "gemm",
				(uint64_t)((1000 + (double)j / 10) * factors[i % 2][i / 2]));
		assert_int_equal(
			array_append(&sides[i % 2].items, (struct regress_recording){model, 0, 0}),
			0);
	}
	assert_int_equal(regress_init(regress, 10, &sides[0], &sides[1]), 0);
	for (size_t i = 0; i < 2 * count; i++)
		array_done(&models[i % 2][i / 2].device_works);
	array_done(&sides[0].items);
	array_done(&sides[1].items);
}

/* A run that is slower as a whole is no slower program, where several are known. */
static void test_several_recordings_know_how_runs_differ(void **state _unused_)
{
	static const double whole_runs[2][RUNS] = {{1, 1, 1.4, 1, 1}, {1.4, 1.4, 1.4, 1, 1.4}};
	static const double slower[2][RUNS] = {{1, 1, 1.1, 1, 1}, {1.4, 1.5, 1.4, 1.3, 1.4}};
	static const double one[2][RUNS] = {{1}, {1.4}};
	struct regress regress;

	compare_runs(&regress, one, 1);
	assert_int_equal(row_of(&regress, "gemm")->verdict, REGRESS_SLOWER);
	assert_true(fabs(regress.run_chance - 0.5) < 1e-9);
	regress_done(&regress);
	compare_runs(&regress, whole_runs, RUNS);
	assert_int_equal(row_of(&regress, "gemm")->verdict, REGRESS_NOISE);
	assert_true(fabs(regress.run_chance - 1.0 / 252) < 1e-9);
	regress_done(&regress);
	compare_runs(&regress, slower, RUNS);
	assert_int_equal(row_of(&regress, "gemm")->verdict, REGRESS_SLOWER);
	assert_int_equal(row_of(&regress, "gemm")->before.count, 500);
	regress_done(&regress);
}

/* Comparisons of equal programs, whose runs differ by a factor, that say `slower`; of 1,000. */
static unsigned count_alarms_of_runs(size_t recordings, uint64_t random)
{
	static const char *const names[] = {"a", "b", "c"};
	unsigned alarms = 0;

	for (int comparison = 0; comparison < 1000; comparison++) {
		struct regress_recordings sides[2] = {{{0}}, {{0}}};
		struct model models[2 * RUNS] = {0};
		struct regress regress;

		for (size_t i = 0; i < 2 * recordings; i++) {
			double factor = exp(0.2 * sqrt(-2 * log(uniform(&random))) *
					    cos(6.283185307 * uniform(&random)));

			for (size_t j = 0; j < COUNT(names); j++)
				add_simulated(&models[i], names[j], 20, factor, &random);
			assert_int_equal(array_append(&sides[i % 2].items,
						 (struct regress_recording){&models[i], 0, 0}),
				0);
		}
		assert_int_equal(regress_init(&regress, 0, &sides[0], &sides[1]), 0);
		alarms += regress.slower > 0;
		regress_done(&regress);
		for (size_t i = 0; i < 2 * recordings; i++)
			array_done(&models[i].device_works);
		array_done(&sides[0].items);
		array_done(&sides[1].items);
	}
	return alarms;
}

/* One recording of each cannot know how runs differ; with five of each the bar of 1 % holds. */
static void test_false_alarms_of_slow_runs(void **state _unused_)
{
	unsigned of_one = count_alarms_of_runs(1, 7), of_five = count_alarms_of_runs(RUNS, 7);

	print_message("%u of 1,000 with one, %u with five\n", of_one, of_five);
	assert_in_range(of_one, 100, 500);
	assert_in_range(of_five, 0, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_spread_decides),
		cmocka_unit_test(test_threshold_decides),
		cmocka_unit_test(test_few_and_small_rows_are_not_judged),
		cmocka_unit_test(test_false_alarms_are_rare),
		cmocka_unit_test(test_kinds_and_domains_are_apart),
		cmocka_unit_test(test_cut_steps_and_open_ranges_are_left_out),
		cmocka_unit_test(test_cpu_time_needs_significance),
		cmocka_unit_test(test_cpu_time_of_each_recording_is_larger),
		cmocka_unit_test(test_several_recordings_know_how_runs_differ),
		cmocka_unit_test(test_false_alarms_of_slow_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
