/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs counted while kernels, operators and steps ran, on cases computed by hand. */
#include <math.h>

#include "trace-example.h"

#include "analyses/device/kernel_counters.h"
#include "model/gpu_counters.h"

#define FURTHEST (INT64_C(1) << 61)
#define US       1000

static void view(struct trace_view *view, struct trace *trace)
{
	static const struct trace_view_options options;

	example_trace_finish(trace);
	assert_int_equal(trace_view_init(view, trace, 0, &options), 0);
}

struct found {
	uint64_t samples, unplaced;
};

static void count_by(struct kernel_counters *counters, const struct trace_view *view,
	enum kernel_counters_by by, struct found *ret_found)
{
	_cleanup_gpu_samples_ struct gpu_samples samples = {0};

	assert_int_equal(gpu_samples_init(&samples, view), 0);
	*ret_found = (struct found){.samples = samples.count, .unplaced = samples.unplaced};
	assert_int_equal(kernel_counters_init(counters, view, &samples, by), 0);
}

/* A value of the process; `device` MODEL_NONE: of no known one. */
static void count(
	struct trace *trace, uint32_t device, const char *name, int64_t time_ns, double value)
{
	const struct trace_counter counter = {
		.time_ns = time_ns,
		.track = example_track(trace, EXAMPLE_PID, 0, false),
		.name = example_text(trace, name),
		.series = example_text(trace, TRACE_COUNTER_SERIES),
		.device = device + 1,
		.value = value,
	};

	assert_int_equal(array_append(&trace->counters, counter), 0);
}

static void kernel(struct trace *trace, const char *name, int64_t device, int64_t stream,
	int64_t start_ns, int64_t duration_ns)
{
	example_device(trace, TRACE_KERNEL, name, device, stream, start_ns, duration_ns, 0);
}

/* SM busy of 10, 20, 30, 40 % in the four 100 us from 0 on. */
static void count_four(struct trace *trace)
{
	for (int i = 0; i < 4; i++)
		count(trace, 0, "GPU 0 SM busy (%)", i * 100 * US, 10.0 * (i + 1));
}

static const struct kernel_counters_row *row_of(
	const struct kernel_counters *counters, const char *name, uint32_t device)
{
	array_foreach (&counters->rows, row) {
		if (row->device == device && strcmp(row->name, name) == 0)
			return row;
	}
	fail_msg("no such row: %s", name);
	return NULL;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static void check_times(const struct kernel_counters_row *row, int64_t measured_us,
	int64_t alone_us, int64_t samples_us, uint64_t samples)
{
	assert_int_equal(row->measured_ns, measured_us * US);
	assert_int_equal(row->alone_ns, alone_us * US);
	assert_int_equal(row->samples_ns, samples_us * US);
	assert_int_equal(row->samples, samples);
}

static void names_of_counters_are_known(void **state)
{
	struct gpu_counter of;

	assert_true(gpu_counter_of_name("GPU 12 DRAM read (GB/s)", &of));
	assert_int_equal(of.gpu, 12);
	assert_int_equal(of.counter, WIRE_PM_DRAM_READ_BYTES);
	assert_false(gpu_counter_of_name("GPU 1", &of));
	assert_false(gpu_counter_of_name("GPU 1 memory", &of));
	assert_false(gpu_counter_of_name("GPU -1 SM busy (%)", &of));
	assert_false(gpu_counter_of_name("GPU  1 SM busy (%)", &of));
	assert_false(gpu_counter_of_name("GPU 99999999999 SM busy (%)", &of));
	assert_false(gpu_counter_of_name("loss", &of));
}

/* a: 0..100, on the edges of a sample; b: 150..320; c: 330..340, in one sample; none after 400. */
static void samples_are_shared_out_by_overlap(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_kernel_counters_ struct kernel_counters counters = {0};
	struct found found;
	const struct kernel_counters_row *row;

	count_four(trace);
	kernel(trace, "a", 0, 7, 0, 100 * US);
	kernel(trace, "b", 0, 7, 150 * US, 170 * US);
	kernel(trace, "c", 0, 7, 330 * US, 10 * US);
	kernel(trace, "late", 0, 7, 400 * US, 50 * US);
	kernel(trace, "none", 0, 7, 380 * US, 0);
	view(&own, trace);
	count_by(&counters, &own, KERNEL_COUNTERS_BY_NAME, &found);
	assert_int_equal(found.samples, 4);
	assert_int_equal(found.unplaced, 0);
	assert_string_equal(counters.rows.items[0].name, "b");
	row = row_of(&counters, "a", 0);
	check_times(row, 100, 100, 100, 1);
	assert_true(is_near(row->means[WIRE_PM_SM_BUSY], 10));
	assert_true(isnan(row->means[WIRE_PM_TENSOR_BUSY]));
	row = row_of(&counters, "b", 0);
	check_times(row, 170, 170, 300, 3);
	/* (50 * 20 + 100 * 30 + 20 * 40) / 170 */
	assert_true(is_near(row->means[WIRE_PM_SM_BUSY], 4800.0 / 170));
	row = row_of(&counters, "c", 0);
	check_times(row, 10, 10, 100, 1);
	assert_true(is_near(row->means[WIRE_PM_SM_BUSY], 40));
	row = row_of(&counters, "late", 0);
	check_times(row, 0, 0, 0, 0);
	assert_int_equal(row->total_ns, 50 * US);
	assert_true(isnan(row->means[WIRE_PM_SM_BUSY]));
	check_times(row_of(&counters, "none", 0), 0, 0, 0, 0);
}

/* Twice in one sample: that counts once. */
static void runs_of_a_name_are_one_row(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_kernel_counters_ struct kernel_counters counters = {0};
	struct found found;
	const struct kernel_counters_row *row;

	count_four(trace);
	kernel(trace, "a", 0, 7, 10 * US, 20 * US);
	kernel(trace, "a", 0, 7, 30 * US, 10 * US);
	kernel(trace, "a", 0, 7, 70 * US, 60 * US);
	view(&own, trace);
	count_by(&counters, &own, KERNEL_COUNTERS_BY_NAME, &found);
	row = row_of(&counters, "a", 0);
	assert_int_equal(row->count, 3);
	check_times(row, 90, 90, 200, 2);
	/* (60 * 10 + 30 * 20) / 90 */
	assert_true(is_near(row->means[WIRE_PM_SM_BUSY], 1200.0 / 90));
}

/* A longer pause: the sample before it holds for the median of 100 us, as the last one does. */
static void gaps_have_no_figures(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_kernel_counters_ struct kernel_counters counters = {0};
	struct found found;
	const struct kernel_counters_row *row;

	count_four(trace);
	count(trace, 0, "GPU 0 SM busy (%)", 1000 * US, 90);
	kernel(trace, "across", 0, 7, 350 * US, 700 * US);
	kernel(trace, "gap", 0, 7, 400 * US, 600 * US);
	kernel(trace, "last", 0, 7, 1090 * US, 100 * US);
	view(&own, trace);
	count_by(&counters, &own, KERNEL_COUNTERS_BY_NAME, &found);
	row = row_of(&counters, "across", 0);
	check_times(row, 100, 100, 200, 2);
	/* (50 * 40 + 50 * 90) / 100 */
	assert_true(is_near(row->means[WIRE_PM_SM_BUSY], 65));
	row = row_of(&counters, "gap", 0);
	check_times(row, 0, 0, 0, 0);
	assert_true(isnan(row->means[WIRE_PM_SM_BUSY]));
	check_times(row_of(&counters, "last", 0), 10, 10, 100, 1);
}

/* Both have the sample; what is theirs alone is said. Copies count as other work, too. */
static void work_at_the_same_time_cannot_be_told_apart(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_kernel_counters_ struct kernel_counters counters = {0};
	struct found found;
	const struct kernel_counters_row *row;

	count_four(trace);
	kernel(trace, "a", 0, 7, 0, 150 * US);
	kernel(trace, "b", 0, 8, 50 * US, 250 * US);
	example_device(trace, TRACE_MEMCPY, "copy", 0, 9, 280 * US, 20 * US, 0);
	view(&own, trace);
	count_by(&counters, &own, KERNEL_COUNTERS_BY_NAME, &found);
	row = row_of(&counters, "a", 0);
	check_times(row, 150, 50, 200, 2);
	/* (100 * 10 + 50 * 20) / 150 */
	assert_true(is_near(row->means[WIRE_PM_SM_BUSY], 2000.0 / 150));
	row = row_of(&counters, "b", 0);
	check_times(row, 250, 130, 300, 3);
	/* (50 * 10 + 100 * 20 + 100 * 30) / 250 */
	assert_true(is_near(row->means[WIRE_PM_SM_BUSY], 22));
	check_times(row_of(&counters, "copy", 0), 20, 0, 100, 1);
}

static void devices_have_their_own_samples(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_kernel_counters_ struct kernel_counters counters = {0};
	struct found found;

	count_four(trace);
	/* Another number in the process than among the rows' devices. */
	count(trace, 5, "GPU 1 SM busy (%)", 0, 70);
	count(trace, 5, "GPU 1 SM busy (%)", 50 * US, 80);
	count(trace, MODEL_NONE, "GPU 2 SM busy (%)", 0, 99);
	count(trace, 0, "GPU 0 SM busy (%)", 50 * US, (double)INFINITY);
	kernel(trace, "a", 0, 7, 0, 100 * US);
	kernel(trace, "a", 5, 7, 0, 75 * US);
	kernel(trace, "a", 6, 7, 0, 75 * US);
	view(&own, trace);
	count_by(&counters, &own, KERNEL_COUNTERS_BY_NAME, &found);
	assert_int_equal(found.samples, 6);
	assert_int_equal(found.unplaced, 1);
	assert_int_equal(counters.rows.count, 3);
	check_times(row_of(&counters, "a", 0), 100, 100, 100, 1);
	assert_true(is_near(row_of(&counters, "a", 0)->means[WIRE_PM_SM_BUSY], 10));
	check_times(row_of(&counters, "a", 1), 75, 75, 100, 2);
	/* (50 * 70 + 25 * 80) / 75 */
	assert_true(is_near(row_of(&counters, "a", 1)->means[WIRE_PM_SM_BUSY], 5500.0 / 75));
	check_times(row_of(&counters, "a", 2), 0, 0, 0, 0);
}

/* Its mean is over the time that has it; 0 is a figure. */
static void a_counter_may_begin_late(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_kernel_counters_ struct kernel_counters counters = {0};
	struct found found;
	const struct kernel_counters_row *row;

	count_four(trace);
	count(trace, 0, "GPU 0 NVLink sent (GB/s)", 200 * US, 6);
	count(trace, 0, "GPU 0 NVLink sent (GB/s)", 300 * US, 0);
	kernel(trace, "a", 0, 7, 0, 320 * US);
	kernel(trace, "b", 0, 7, 350 * US, 50 * US);
	view(&own, trace);
	count_by(&counters, &own, KERNEL_COUNTERS_BY_NAME, &found);
	row = row_of(&counters, "a", 0);
	check_times(row, 320, 320, 400, 4);
	assert_true(is_near(row->means[WIRE_PM_NVLINK_SENT_BYTES], 600.0 / 120));
	row = row_of(&counters, "b", 0);
	assert_true(row->means[WIRE_PM_NVLINK_SENT_BYTES] == 0);
	assert_true(isnan(row->means[WIRE_PM_PCIE_READ_BYTES]));
}

/* How long one sample holds is not known. */
static void one_sample_is_none(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_kernel_counters_ struct kernel_counters counters = {0};
	struct found found;

	count(trace, 0, "GPU 0 SM busy (%)", 0, 50);
	count(trace, 0, "loss", 10, 50);
	kernel(trace, "a", 0, 7, 0, 320 * US);
	view(&own, trace);
	count_by(&counters, &own, KERNEL_COUNTERS_BY_NAME, &found);
	assert_int_equal(found.samples, 0);
	assert_int_equal(counters.rows.count, 0);
}

/* layer 0..50 with mm 10..20 in it launches a, layer alone b; c has no range. */
static void ranges_have_the_work_inside_them(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_kernel_counters_ struct kernel_counters counters = {0};
	struct found found;
	const struct kernel_counters_row *row;

	count_four(trace);
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#3", EXAMPLE_PID, 0, 400 * US, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "layer", EXAMPLE_PID, 0, 50 * US, 0);
	example_host(trace, TRACE_CPU_OP, "mm", EXAMPLE_PID, 10 * US, 10 * US, 0);
	example_launch(trace, "a", 7, 12 * US, 2 * US, 50 * US, 100 * US, 1);
	example_launch(trace, "b", 7, 30 * US, 2 * US, 200 * US, 50 * US, 2);
	example_launch(trace, "c", 7, 60 * US, 2 * US, 240 * US, 100 * US, 3);
	view(&own, trace);
	count_by(&counters, &own, KERNEL_COUNTERS_BY_RANGE, &found);
	assert_int_equal(counters.rows.count, 2);
	row = row_of(&counters, "mm", 0);
	check_times(row, 100, 100, 200, 2);
	assert_true(is_near(row->means[WIRE_PM_SM_BUSY], 15));
	row = row_of(&counters, "layer", 0);
	assert_int_equal(row->count, 2);
	check_times(row, 150, 140, 300, 3);
	/* (50 * 10 + 50 * 20 + 50 * 30) / 150 */
	assert_true(is_near(row->means[WIRE_PM_SM_BUSY], 20));
}

static void steps_have_all_of_their_time(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_kernel_counters_ struct kernel_counters counters = {0};
	struct found found;
	const struct kernel_counters_row *rows;

	count_four(trace);
	example_host(
		trace, TRACE_USER_ANNOTATION, "ProfilerStep#4", EXAMPLE_PID, 150 * US, 100 * US, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#3", EXAMPLE_PID, 0, 150 * US, 0);
	kernel(trace, "a", 0, 7, 0, 10 * US);
	kernel(trace, "a", 1, 7, 0, 10 * US);
	view(&own, trace);
	count_by(&counters, &own, KERNEL_COUNTERS_BY_STEP, &found);
	assert_int_equal(counters.rows.count, 2);
	rows = counters.rows.items;
	assert_int_equal(rows[0].step, 3);
	assert_int_equal(rows[0].pid, EXAMPLE_PID);
	assert_int_equal(rows[0].samples, 2);
	assert_true(is_near(rows[0].means[WIRE_PM_SM_BUSY], 2000.0 / 150));
	assert_int_equal(rows[1].step, 4);
	assert_int_equal(rows[1].measured_ns, 100 * US);
	assert_true(is_near(rows[1].means[WIRE_PM_SM_BUSY], 25));
}

/* Values that no device has, and times as far apart as readers let them be: no fault, and bounded.
 */
static void damaged_files_do_no_harm(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};

	count(trace, 0, "GPU 0 SM busy (%)", INT64_MIN, 1e300);
	count(trace, 0, "GPU 0 SM busy (%)", INT64_MIN, 10);
	count(trace, 0, "GPU 0 SM busy (%)", INT64_MAX, 20);
	count(trace, 0, "GPU 0 SM busy (%)", INT64_MAX - 1, 20);
	kernel(trace, "a", 0, 7, -FURTHEST, FURTHEST);
	kernel(trace, "b", 0, 8, FURTHEST - 5, FURTHEST);
	kernel(trace, "c", 0, 9, 5, -1);
	view(&own, trace);
	for (int by = KERNEL_COUNTERS_BY_NAME; by <= KERNEL_COUNTERS_BY_STEP; by++) {
		struct kernel_counters counters = {0};
		struct found found;

		count_by(&counters, &own, (enum kernel_counters_by)by, &found);
		kernel_counters_done(&counters);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_counters_are_known),
		cmocka_unit_test(samples_are_shared_out_by_overlap),
		cmocka_unit_test(runs_of_a_name_are_one_row),
		cmocka_unit_test(gaps_have_no_figures),
		cmocka_unit_test(work_at_the_same_time_cannot_be_told_apart),
		cmocka_unit_test(devices_have_their_own_samples),
		cmocka_unit_test(a_counter_may_begin_late),
		cmocka_unit_test(one_sample_is_none),
		cmocka_unit_test(ranges_have_the_work_inside_them),
		cmocka_unit_test(steps_have_all_of_their_time),
		cmocka_unit_test(damaged_files_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
