/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' statistics against values computed by hand, and what diff makes of them. */
#include <math.h>
#include <stdio.h>

#include "model-example.h"

#include "analyses/cpu/diff.h"
#include "analyses/statistics.h"
#include "model/weigh.h"

static void assert_near(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-9 * fmax(1, fabs(expected))))
		fail_msg("%.12g is not %.12g", value, expected);
}

/* z = 0.02 / sqrt(0.05 × 0.95 × 0.002) = 2.0519567, P = 0.0401739. */
static void test_two_proportions(void **state)
{
	assert_near(statistics_two_proportions(40, 1000, 60, 1000), 0.04017387028851213);
	assert_near(statistics_two_proportions(10, 200, 30, 300), 0.04349427390059603);
	assert_near(statistics_two_proportions(60, 1000, 40, 1000), 0.04017387028851213);
	assert_near(statistics_two_proportions(5, 10, 50, 100), 1);
	assert_near(statistics_two_proportions(0, 0, 5, 10), 1);
	assert_near(statistics_two_proportions(10, 10, 10, 10), 1);
}

/* z = (130 - 115) / sqrt(230 / 4) = 1.9781414, P = 0.0479128. */
static void test_two_counts(void **state)
{
	assert_near(statistics_two_counts(100, 1, 130, 1), 0.04791275500844769);
	assert_near(statistics_two_counts(100, 1, 50, 2), 1);
	assert_near(statistics_two_counts(100, 1, 80, 2), 0.0015654022580025523);
	assert_near(statistics_two_counts(0, 1, 0, 1), 1);
	assert_near(statistics_two_counts(5, 0, 5, 1), 1);
}

/* Sorted 0.01 0.02 0.03 0.04 of 4: all become 0.04; with 0.5 last, 4 × 0.03 ÷ 3 = 0.04. */
static void test_benjamini_hochberg(void **state)
{
	double even[] = {0.04, 0.01, 0.03, 0.02};
	double mixed[] = {0.5, 0.001, 0.03, 0.02};

	assert_int_equal(statistics_benjamini_hochberg(even, 4), 0);
	for (int i = 0; i < 4; i++)
		assert_near(even[i], 0.04);
	assert_int_equal(statistics_benjamini_hochberg(mixed, 4), 0);
	assert_near(mixed[0], 0.5);
	assert_near(mixed[1], 0.004);
	assert_near(mixed[2], 0.04);
	assert_near(mixed[3], 0.04);
	assert_int_equal(statistics_benjamini_hochberg(even, 0), 0);
}

/* `same` and `changed` samples in two functions that main calls; one directory or another. */
static struct model *make(
	const char *directory, uint64_t same, uint64_t changed, uint64_t period_ns)
{
	char path[64];
	struct example example;
	capture_id app, entry;

	snprintf(path, sizeof(path), "%s/app", directory);
	example_begin(&example, period_ns);
	app = example_mapping(&example, path);
	entry = example_frame(&example, "main", app, 1);
	example_frames(
		&example, WIRE_STOP_COMPLETE, entry, example_frame(&example, "same", app, 2));
	example_frames(
		&example, WIRE_STOP_COMPLETE, entry, example_frame(&example, "changed", app, 3));
	example_process(&example, 1, "app", 0);
	example_samples(&example, 1, 1, 1, 1000, same);
	example_samples(&example, 1, 1, 2, 1000, changed);
	return example_end(&example);
}

static struct diff compare(
	struct model *before, struct model *after, const struct diff_options *options)
{
	static const struct selection everything = {0};
	struct selected one, other;
	struct diff diff;

	assert_int_equal(selection_apply(&everything, before, &one, NULL), 0);
	assert_int_equal(selection_apply(&everything, after, &other, NULL), 0);
	assert_int_equal(diff_init(&diff, options, before, &one, after, &other), 0);
	selected_done(&one);
	selected_done(&other);
	model_free(before);
	model_free(after);
	return diff;
}

static const struct diff_row *row_named(const struct diff *diff, const char *name)
{
	array_foreach (&diff->rows, row) {
		if (strcmp(row->name, name) == 0)
			return row;
	}
	fail_msg("there is no row %s", name);
	return NULL;
}

static void test_rows_match_by_name(void **state)
{
	struct diff_options options = {.by = BREAKDOWN_FUNCTION, .sort = BREAKDOWN_SORT_SELF};
	struct diff diff = compare(make("/old", 960, 40, EXAMPLE_PERIOD_NS),
		make("/new", 940, 60, EXAMPLE_PERIOD_NS), &options);
	const struct diff_row *row = row_named(&diff, "changed");

	assert_int_equal(diff.rows.count, 3);
	assert_int_equal(row->self_before, 40);
	assert_int_equal(row->self_after, 60);
	assert_near(row->share_change, 0.02);
	assert_near(row->time_change, 0.02);
	/* Two hypotheses, main has no self samples; both have the same p-value in the test of
	 * shares. */
	assert_near(row->share_q, 0.04017387028851213);
	assert_near(row_named(&diff, "same")->share_q, 0.04017387028851213);
	assert_int_equal(row_named(&diff, "main")->total_before, 1000);
	assert_near(row_named(&diff, "main")->time_change, 0);
	assert_near(diff.total_time_change, 0);
	assert_near(diff.total_time_p, 1);
	assert_true(strcmp(diff.rows.items[2].name, "main") == 0);
	diff_done(&diff);
}

static void test_total_and_modules(void **state)
{
	struct diff_options options = {.by = BREAKDOWN_MODULE, .sort = BREAKDOWN_SORT_TOTAL};
	struct diff diff = compare(make("/old", 100, 0, EXAMPLE_PERIOD_NS),
		make("/new", 130, 0, EXAMPLE_PERIOD_NS), &options);

	assert_int_equal(diff.rows.count, 1);
	assert_string_equal(diff.rows.items[0].module, "app");
	assert_near(diff.rows.items[0].time_change, 0.03);
	assert_near(diff.rows.items[0].time_q, 0.04791275500844769);
	assert_near(diff.rows.items[0].share_change, 0);
	assert_near(diff.total_time_p, 0.04791275500844769);
	diff_done(&diff);
}

/* Half the frequency: the same time in half the samples. */
static void test_periods_may_differ(void **state)
{
	struct diff_options options = {.by = BREAKDOWN_FUNCTION, .sort = BREAKDOWN_SORT_SELF};
	struct diff diff = compare(make("/a", 200, 0, EXAMPLE_PERIOD_NS),
		make("/b", 100, 0, 2 * EXAMPLE_PERIOD_NS), &options);

	assert_near(diff.total_time_change, 0);
	assert_near(diff.total_time_p, 1);
	diff_done(&diff);
}

static void test_without_a_period_shares_are_compared(void **state)
{
	struct diff_options options = {.by = BREAKDOWN_FUNCTION, .sort = BREAKDOWN_SORT_SELF};
	struct diff diff =
		compare(make("/a", 500, 500, 0), make("/b", 900, 100, EXAMPLE_PERIOD_NS), &options);

	assert_false(diff.has_time);
	assert_true(isnan(diff.total_time_change));
	assert_true(isnan(diff.rows.items[0].time_q));
	assert_true(diff_row_is_significant(&diff, row_named(&diff, "changed")));
	diff_done(&diff);
}

/* 100 and 130 pieces of device work of 1,000 ns each: as many events, not as many nanoseconds. */
static void test_times_that_were_measured_are_tested_by_events(void **state)
{
	struct diff_options options = {
		.by = BREAKDOWN_FUNCTION, .sort = BREAKDOWN_SORT_SELF, .weight = MODEL_WEIGHT_GPU};
	struct model *models[] = {
		make("/a", 100, 0, MODEL_UNIT_NS), make("/b", 130, 0, MODEL_UNIT_NS)};
	struct diff diff;

	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		array_foreach (&models[i]->samples, sample)
			sample->count = 1000;
	diff = compare(models[0], models[1], &options);
	assert_int_equal(diff.before.time_ns, 100000);
	assert_near(diff.total_time_change, 30000e-9);
	assert_near(diff.total_time_p, 0.04791275500844769);
	assert_near(row_named(&diff, "same")->time_q, 0.04791275500844769);
	diff_done(&diff);
}

static void test_the_gate(void **state)
{
	struct diff_options options = {.by = BREAKDOWN_FUNCTION, .sort = BREAKDOWN_SORT_SELF};
	struct diff diff = compare(make("/a", 900, 100, EXAMPLE_PERIOD_NS),
		make("/b", 900, 300, EXAMPLE_PERIOD_NS), &options);
	struct diff_regression found;

	diff_find_regression(&diff, 5, &found);
	assert_true(found.total);
	assert_near(found.total_percent, 20);
	assert_string_equal(found.row->name, "changed");
	assert_near(found.row_percent, 20);
	diff_find_regression(&diff, 20, &found); /* "more than" */
	assert_false(found.total);
	assert_null(found.row);
	diff_done(&diff);
}

/* 3 samples more of 10 are 30 %, and mean nothing. */
static void test_noise_passes_the_gate(void **state)
{
	struct diff_options options = {.by = BREAKDOWN_FUNCTION, .sort = BREAKDOWN_SORT_SELF};
	struct diff diff = compare(
		make("/a", 5, 5, EXAMPLE_PERIOD_NS), make("/b", 5, 8, EXAMPLE_PERIOD_NS), &options);
	struct diff_regression found;

	diff_find_regression(&diff, 5, &found);
	assert_false(found.total);
	assert_null(found.row);
	assert_near(found.total_percent, 30);
	diff_done(&diff);
}

static void test_faster_passes_the_gate(void **state)
{
	struct diff_options options = {.by = BREAKDOWN_FUNCTION, .sort = BREAKDOWN_SORT_SELF};
	struct diff diff = compare(make("/a", 900, 900, EXAMPLE_PERIOD_NS),
		make("/b", 900, 100, EXAMPLE_PERIOD_NS), &options);
	struct diff_regression found;

	diff_find_regression(&diff, 5, &found);
	assert_false(found.total);
	assert_null(found.row);
	assert_true(diff_row_is_significant(&diff, row_named(&diff, "changed")));
	diff_done(&diff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_proportions),
		cmocka_unit_test(test_two_counts),
		cmocka_unit_test(test_benjamini_hochberg),
		cmocka_unit_test(test_rows_match_by_name),
		cmocka_unit_test(test_total_and_modules),
		cmocka_unit_test(test_periods_may_differ),
		cmocka_unit_test(test_without_a_period_shares_are_compared),
		cmocka_unit_test(test_times_that_were_measured_are_tested_by_events),
		cmocka_unit_test(test_the_gate),
		cmocka_unit_test(test_noise_passes_the_gate),
		cmocka_unit_test(test_faster_passes_the_gate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
