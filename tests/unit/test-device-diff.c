/* SPDX-License-Identifier: Apache-2.0 */
/* What changed in device work: other counts, and other durations, where they are no noise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "analyses/device/device_diff.h"
#include "analyses/statistics.h"

static void assert_near(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-9 * fmax(1, fabs(expected))))
		fail_msg("%.12g is not %.12g", value, expected);
}

static void add(struct model *model, enum wire_device_kind kind, const char *name,
	uint64_t duration_ns, bool failed)
{
	struct model_device_work work = {
		.end_ns = duration_ns, .name = name, .kind = kind, .failed = failed};

	assert_int_equal(array_append(&model->device_works, work), 0);
}

/* Durations of `mean` - 4, - 2, 0, + 2 and + 4, one after the other. */
static void add_kernels(struct model *model, const char *name, unsigned count, uint64_t mean)
{
	for (unsigned i = 0; i < count; i++)
		add(model, WIRE_DEVICE_KERNEL, name, mean - 4 + 2 * (i % 5), false);
}

static const struct device_diff_row *row_of(const struct device_diff *diff, const char *name)
{
	array_foreach (&diff->rows, row) {
		if (strcmp(row->name, name) == 0)
			return row;
	}
	fail_msg("there is no row %s", name);
	return NULL;
}

/* Batches of one: means 1, 2 and 6 about 3: (4 + 1 + 9) / (3 × 2). z = 2 / sqrt(1) */
static void test_statistics(void **state _unused_)
{
	const double values[] = {1, 2, 6};
	double many[80];

	for (int i = 0; i < 80; i++)
		many[i] = i / 4; /* 20 batches of equal values: sum((i - 9.5)²) = 665 */
	assert_near(statistics_batch_means(values, 3), 14.0 / 6);
	assert_near(statistics_batch_means(many, 80), 665.0 / 380);
	assert_near(statistics_two_means(5, 0.5, 7, 0.5), erfc(2 / sqrt(2)));
	assert_near(statistics_two_means(5, 0, 5, 0), 1);
	assert_near(statistics_two_means(5, 0, 6, 0), 0);
	assert_true(isnan(statistics_two_means(5, NAN, 6, 0)));
}

static void test_counts_and_durations_are_apart(void **state _unused_)
{
	struct model before = {0}, after = {0};
	struct device_diff_regression found;
	struct device_diff diff;
	const struct device_diff_row *row;

	add_kernels(&before, "longer", 100, 1000);
	add_kernels(&after, "longer", 100, 1500);
	add_kernels(&before, "oftener", 50, 1000);
	add_kernels(&after, "oftener", 100, 1000);
	add_kernels(&after, "new", 30, 100);
	add(&after, WIRE_DEVICE_KERNEL, "new", 1000000, true); /* failed: no work */
	assert_int_equal(device_diff_init(&diff, &before, &after, false), 0);
	row = row_of(&diff, "longer");
	assert_near(row->by_duration_ns, 50000);
	assert_near(row->by_count_ns, 0);
	assert_true(row->duration_q < 1e-6);
	assert_near(row->before.share, 100.0 / 150);
	row = row_of(&diff, "oftener");
	assert_near(row->by_count_ns, 50000);
	assert_near(row->by_duration_ns, 0);
	row = row_of(&diff, "new");
	assert_near(row->by_count_ns, 3000);
	assert_int_equal(row->after.count, 30);
	assert_true(isnan(row->before.mean_ns) && isnan(row->duration_q));
	device_diff_find_regression(&diff, 40, &found);
	assert_null(found.row);
	assert_true(found.total);
	assert_near(found.total_percent, 100 * 103.0 / 150);
	device_diff_find_regression(&diff, 30, &found);
	assert_near(found.row_percent, 100 * 50.0 / 150);
	device_diff_done(&diff);
	array_done(&before.device_works);
	array_done(&after.device_works);
}

/* Of equal work nothing changes; of too little, or of noise, nothing is known. */
static void test_noise_is_no_change(void **state _unused_)
{
	struct model before = {0}, after = {0};
	struct device_diff_regression found;
	struct device_diff diff;

	add_kernels(&before, "few", DEVICE_DIFF_MIN_COUNT - 1, 1000);
	add_kernels(&after, "few", DEVICE_DIFF_MIN_COUNT - 1, 3000);
	for (unsigned i = 0; i < 40; i++) {
		add(&before, WIRE_DEVICE_COPY, "copy", 100 + 97 * (i % 13), false);
		add(&after, WIRE_DEVICE_COPY, "copy", 110 + 97 * (i % 11), false);
	}
	assert_int_equal(device_diff_init(&diff, &before, &after, false), 0);
	assert_true(isnan(row_of(&diff, "few")->duration_q));
	assert_true(row_of(&diff, "copy")->duration_q > DEVICE_DIFF_SIGNIFICANT);
	device_diff_find_regression(&diff, 0, &found);
	assert_null(found.row);
	assert_false(found.total);
	device_diff_done(&diff);
	array_done(&before.device_works);
	array_done(&after.device_works);
}

/* The same name is another row as another kind. */
static void test_kinds_are_apart(void **state _unused_)
{
	struct model before = {0}, after = {0};
	struct device_diff diff;

	add(&before, WIRE_DEVICE_KERNEL, "fill", 10, false);
	add(&after, WIRE_DEVICE_FILL, "fill", 10, false);
	assert_int_equal(device_diff_init(&diff, &before, &after, false), 0);
	assert_int_equal(diff.rows.count, 2);
	device_diff_done(&diff);
	assert_int_equal(device_diff_init(&diff, &before, &before, false), 0);
	assert_int_equal(diff.rows.count, 1);
	assert_near(diff.rows.items[0].change_ns, 0);
	device_diff_done(&diff);
	array_done(&before.device_works);
	array_done(&after.device_works);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statistics),
		cmocka_unit_test(test_counts_and_durations_are_apart),
		cmocka_unit_test(test_noise_is_no_change),
		cmocka_unit_test(test_kinds_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
