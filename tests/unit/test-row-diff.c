/* SPDX-License-Identifier: Apache-2.0 */
/* What changed between runs: other counts, and other durations, where they are no noise; and what
 * HTA compares. */
#include "trace-example.h"

#include <math.h>
#include <stdlib.h>

#include "analyses/program/row_diff.h"
#include "analyses/statistics.h"
#include "compat/hta/diff.h"
#include "compat/hta/hta.h"

static void assert_near(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-9 * fmax(1, fabs(expected))))
		fail_msg("%.12g is not %.12g", value, expected);
}

static void view(struct trace_view *view, struct trace *trace, bool hta)
{
	const struct trace_definitions *definitions = hta ? &hta_definitions : &own_definitions;

	example_trace_finish(trace);
	assert_int_equal(definitions->view(view, trace, 0,
				 &(struct trace_view_options){.keep_last_step = true}),
		0);
}

/* Views are those of the traces: two, or the same one twice. */
static void compare(struct row_diff *diff, struct trace *before, struct trace *after)
{
	_cleanup_trace_view_ struct trace_view first = {0}, second = {0};

	view(&first, before, false);
	view(&second, after, false);
	assert_int_equal(
		row_diff_init(diff, (struct row_diff_input[]){{.views = &first, .count = 1},
					    {.views = &second, .count = 1}}),
		0);
}

/* NULL: there is none. */
static const struct row_diff_row *find_row(
	const struct row_diff *diff, const char *name, enum row_diff_kind kind)
{
	array_foreach (&diff->rows, row) {
		if (row->kind == kind && strcmp(row->name, name) == 0)
			return row;
	}
	return NULL;
}

static const struct row_diff_row *kernel_of(const struct row_diff *diff, const char *name)
{
	const struct row_diff_row *row = find_row(diff, name, ROW_DIFF_KERNEL);

	assert_non_null(row);
	return row;
}

/* ---- counts and durations ---- */

/* One after the other, on a stream of its own. */
static void add(
	struct trace *trace, enum trace_category category, const char *name, int64_t duration_ns)
{
	int64_t start_ns = (int64_t)trace->events.count * 10000;

	example_device(trace, category, name, 0, 7, start_ns, duration_ns, 0);
}

/* Durations of `mean` - 4, - 2, 0, + 2 and + 4, one after the other. */
static void add_kernels(struct trace *trace, const char *name, unsigned count, unsigned mean)
{
	for (unsigned i = 0; i < count; i++)
		add(trace, TRACE_KERNEL, name, mean - 4 + 2 * (i % 5));
}

/* Batches of one: means 1, 2 and 6 about 3: (4 + 1 + 9) / (3 × 2). z = 2 / sqrt(1) */
static void statistics_are_those_of_batch_means(void **state)
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
	/* t = 2 with 10 degrees of freedom, 1 with 2, and 10 with 198. */
	assert_near(statistics_welch(0, 3, 6, 2, 3, 6), 0.0733880347707404);
	assert_near(statistics_welch(0, 1, 2, 1, 1, 2), 0.422649730810374);
	assert_true(statistics_welch(0, 50, 100, 10, 50, 100) < 1e-15);
	assert_near(statistics_welch(5, 0, 3, 5, 0, 3), 1);
	assert_true(isnan(statistics_welch(5, NAN, 1, 6, 1, 3)));
}

static void counts_and_durations_are_apart(void **state)
{
	_cleanup_trace_ struct trace *before = example_trace_new();
	_cleanup_trace_ struct trace *after = example_trace_new();
	_cleanup_row_diff_ struct row_diff diff = {0};
	struct row_diff_regression found;
	const struct row_diff_row *row;

	add_kernels(before, "longer", 100, 1000);
	add_kernels(after, "longer", 100, 1500);
	add_kernels(before, "oftener", 50, 1000);
	add_kernels(after, "oftener", 100, 1000);
	add_kernels(after, "new", 30, 100);
	compare(&diff, before, after);
	row = kernel_of(&diff, "longer");
	assert_near(row->by_duration_ns, 50000);
	assert_near(row->by_count_ns, 0);
	assert_true(row->duration_q < 1e-6);
	assert_near(row->sides[0].share, 100.0 / 150);
	assert_int_equal(row_diff_change_of(row), ROW_DIFF_LONGER);
	row = kernel_of(&diff, "oftener");
	assert_near(row->by_count_ns, 50000);
	assert_near(row->by_duration_ns, 0);
	assert_int_equal(row_diff_change_of(row), ROW_DIFF_MORE);
	row = kernel_of(&diff, "new");
	assert_near(row->by_count_ns, 3000);
	assert_int_equal(row->sides[1].count, 30);
	assert_true(isnan(row->sides[0].mean_ns) && isnan(row->duration_q));
	assert_int_equal(diff.sides[0].works, 150);
	assert_int_equal(diff.sides[1].device_ns, 253000);
	row_diff_find_regression(&diff, 40, &found);
	assert_null(found.row);
	assert_true(found.total);
	assert_near(found.total_percent, 100 * 103.0 / 150);
	row_diff_find_regression(&diff, 30, &found);
	assert_near(found.row_percent, 100 * 50.0 / 150);
}

/* Of equal work nothing changes; of too little, or of noise, nothing is known. */
static void noise_is_no_change(void **state)
{
	_cleanup_trace_ struct trace *before = example_trace_new();
	_cleanup_trace_ struct trace *after = example_trace_new();
	_cleanup_row_diff_ struct row_diff diff = {0};
	struct row_diff_regression found;

	add_kernels(before, "few", ROW_DIFF_MIN_COUNT - 1, 1000);
	add_kernels(after, "few", ROW_DIFF_MIN_COUNT - 1, 3000);
	for (unsigned i = 0; i < 40; i++) {
		add(before, TRACE_MEMCPY, "copy", 100 + 97 * (i % 13));
		add(after, TRACE_MEMCPY, "copy", 110 + 97 * (i % 11));
	}
	compare(&diff, before, after);
	assert_true(isnan(kernel_of(&diff, "few")->duration_q));
	assert_int_equal(row_diff_change_of(kernel_of(&diff, "few")), ROW_DIFF_TOO_FEW);
	assert_true(find_row(&diff, "copy", ROW_DIFF_COPY)->duration_q > ROW_DIFF_SIGNIFICANT);
	assert_int_equal(
		row_diff_change_of(find_row(&diff, "copy", ROW_DIFF_COPY)), ROW_DIFF_NOISE);
	row_diff_find_regression(&diff, 0, &found);
	assert_null(found.row);
	assert_false(found.total);
}

/* The order in the file is not that of time: batches are of what ran one after the other. */
static void durations_are_tested_in_order_of_time(void **state)
{
	_cleanup_trace_ struct trace *sorted = example_trace_new();
	_cleanup_trace_ struct trace *shuffled = example_trace_new();
	_cleanup_row_diff_ struct row_diff diff = {0};

	for (int64_t i = 0; i < 40; i++) {
		int64_t other = i * 7 % 40;

		example_host(sorted, TRACE_CPU_OP, "op", EXAMPLE_PID, i * 1000, 100 + i, 0);
		example_host(
			shuffled, TRACE_CPU_OP, "op", EXAMPLE_PID, other * 1000, 100 + other, 0);
	}
	compare(&diff, sorted, shuffled);
	assert_int_equal(diff.rows.count, 1);
	assert_near(diff.rows.items[0].sides[0].error2_ns2, diff.rows.items[0].sides[1].error2_ns2);
	assert_int_equal(row_diff_change_of(&diff.rows.items[0]), ROW_DIFF_UNCHANGED);
}

/* ---- kinds and names ---- */

/* `gemms` launches of a step, which another step follows. */
static struct trace *run_of(int gemms, int64_t gemm_ns, const char *extra)
{
	struct trace *trace = example_trace_new();
	int64_t now_ns = 1000;

	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#7", EXAMPLE_PID, 0, 100000, 0);
	example_host(
		trace, TRACE_USER_ANNOTATION, "ProfilerStep#8", EXAMPLE_PID, 100000, 100000, 0);
	for (int i = 0; i < gemms; i++, now_ns += 1000) {
		example_host(trace, TRACE_CPU_OP, "aten::mm", EXAMPLE_PID, now_ns, 500, 0);
		example_launch(trace, "gemm", 7, now_ns + 100, 100, now_ns + 150000, gemm_ns,
			(uint64_t)i + 1);
	}
	/* An operator and a kernel of one name. */
	example_host(trace, TRACE_CPU_OP, extra, EXAMPLE_PID, 50000, 3000, 0);
	example_launch(trace, extra, 7, 51000, 1000, 300000, 2000, 90);
	example_host(trace, TRACE_CPU_OP, "second step", EXAMPLE_PID, 150000, 9000, 0);
	return trace;
}

static void rows_are_found_by_kind_and_name(void **state)
{
	_cleanup_trace_ struct trace *before = run_of(3, 4000, "gone");
	_cleanup_trace_ struct trace *after = run_of(5, 3000, "new");
	_cleanup_row_diff_ struct row_diff diff = {0};
	const struct row_diff_row *row;

	compare(&diff, before, after);
	assert_int_equal(diff.sides[0].steps, 2);
	row = kernel_of(&diff, "gemm");
	assert_int_equal(row->sides[0].count, 3);
	assert_int_equal(row->sides[1].count, 5);
	assert_int_equal(row->sides[0].total_ns, 12000);
	assert_int_equal(row->sides[1].total_ns, 15000);
	assert_int_equal(row_diff_change_of(row), ROW_DIFF_MORE);
	for (size_t i = 1; i < diff.rows.count; i++)
		assert_true(fabs(diff.rows.items[i].change_ns) <=
			    fabs(diff.rows.items[i - 1].change_ns));
	row = find_row(&diff, "gone", ROW_DIFF_OPERATOR);
	assert_int_equal(row_diff_change_of(row), ROW_DIFF_GONE);
	assert_int_equal(row->sides[0].total_ns, 3000);
	assert_true(isnan(row->sides[0].share));
	row = kernel_of(&diff, "new");
	assert_int_equal(row_diff_change_of(row), ROW_DIFF_NEW);
	assert_int_equal(row->sides[1].total_ns, 2000);
	row = find_row(&diff, "second step", ROW_DIFF_OPERATOR);
	assert_int_equal(row_diff_change_of(row), ROW_DIFF_UNCHANGED);
	row = find_row(&diff, "ProfilerStep", ROW_DIFF_STEP);
	assert_int_equal(row->sides[0].count, 2);
	assert_int_equal(row->sides[0].total_ns, 200000);
	assert_null(find_row(&diff, "gone", ROW_DIFF_ANY));
}

/* As sonde's exports of recordings have them. */
static void slices_of_samples_do_not_count(void **state)
{
	_cleanup_trace_ struct trace *trace = run_of(1, 4000, "extra");
	_cleanup_trace_ struct trace *export = run_of(1, 4000, "extra");
	_cleanup_row_diff_ struct row_diff diff = {0};
	uint32_t row = example_host(export, TRACE_OTHER, "main", EXAMPLE_PID, 0, 900000, 0);

	export->events.items[row].category_name = example_text(export, "native");
	example_host(export, TRACE_OTHER, "a range", EXAMPLE_PID, 0, 900000, 0);
	compare(&diff, trace, export);
	assert_null(find_row(&diff, "main", ROW_DIFF_OTHER));
	assert_non_null(find_row(&diff, "a range", ROW_DIFF_OTHER));
}

static void times_may_be_per_second(void **state)
{
	_cleanup_trace_ struct trace *trace = run_of(3, 4000, "extra");
	_cleanup_trace_view_ struct trace_view one = {0};
	_cleanup_row_diff_ struct row_diff diff = {0};

	view(&one, trace, false);
	assert_int_equal(row_diff_init(&diff, (struct row_diff_input[]){{&one, 1, NS_PER_S / 2},
						      {&one, 1, NS_PER_S}}),
		0);
	assert_near(kernel_of(&diff, "gemm")->change_ns, -12000);
	assert_near(kernel_of(&diff, "gemm")->by_count_ns, -12000);
}

/* ---- HTA ---- */

static void hta_compares_first_steps_by_name(void **state)
{
	_cleanup_trace_ struct trace *before = run_of(3, 4000, "gone");
	_cleanup_trace_ struct trace *after = run_of(2, 4000, "new");
	_cleanup_trace_view_ struct trace_view first = {0}, second = {0};
	_cleanup_row_diff_ struct row_diff diff = {0};
	const struct row_diff_row *row;

	view(&first, before, true);
	view(&second, after, true);
	assert_int_equal(hta_diff_init(&diff, (const struct trace_view *[]){&first, &second}), 0);
	row = find_row(&diff, "gone", ROW_DIFF_ANY);
	assert_int_equal(row->sides[0].count, 2);
	assert_int_equal(row->sides[0].total_ns, 5000);
	assert_string_equal(hta_diff_change_name(row), "deleted");
	assert_null(find_row(&diff, "second step", ROW_DIFF_ANY));
	/* Its kernels run after the step that launched them. */
	row = find_row(&diff, "gemm", ROW_DIFF_ANY);
	assert_int_equal(row->sides[0].count, 3);
	assert_string_equal(hta_diff_change_name(row), "decreased");
}

static void runs_without_steps_have_no_first_one(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view one = {0};
	_cleanup_row_diff_ struct row_diff diff = {0};

	example_host(trace, TRACE_CPU_OP, "a", 1, 0, 10, 0);
	view(&one, trace, true);
	assert_int_equal(hta_diff_init(&diff, (const struct trace_view *[]){&one, &one}), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statistics_are_those_of_batch_means),
		cmocka_unit_test(counts_and_durations_are_apart),
		cmocka_unit_test(noise_is_no_change),
		cmocka_unit_test(durations_are_tested_in_order_of_time),
		cmocka_unit_test(rows_are_found_by_kind_and_name),
		cmocka_unit_test(slices_of_samples_do_not_count),
		cmocka_unit_test(times_may_be_per_second),
		cmocka_unit_test(hta_compares_first_steps_by_name),
		cmocka_unit_test(runs_without_steps_have_no_first_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
