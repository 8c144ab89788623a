/* SPDX-License-Identifier: Apache-2.0 */
/* Who has the work, and how near it comes to the roof, on traces computed by hand. */
#include "trace-example.h"

#include <math.h>

#include "analyses/roofline/roofline.h"

#define US 1000

static void set_inputs(struct trace *trace, uint32_t row, const char *dims, const char *types)
{
	struct trace_op op = {
		.rf_id = TRACE_NO_ID,
		.sequence = TRACE_NO_NUMBER,
		.collective = MODEL_NONE,
		.input_dims = example_text(trace, dims),
		.input_types = example_text(trace, types),
	};

	trace->events.items[row].detail = (uint32_t)trace->ops.count;
	assert_int_equal(array_append(&trace->ops, op), 0);
}

static uint32_t example_operator(struct trace *trace, const char *name, int64_t start_us,
	int64_t duration_us, const char *dims)
{
	uint32_t row = example_host(
		trace, TRACE_CPU_OP, name, EXAMPLE_PID, start_us * US, duration_us * US, 0);

	set_inputs(trace, row, dims, "[\"float\", \"float\", \"float\"]");
	return row;
}

static void init(struct roofline *roofline, struct trace_view *view, struct trace *trace,
	const char *peaks_text)
{
	static const struct trace_view_options options;
	struct peaks peaks = {0};

	example_trace_finish(trace);
	assert_int_equal(trace_view_init(view, trace, 0, &options), 0);
	if (peaks_text)
		assert_int_equal(peaks_parse(&peaks, peaks_text, NULL), 0);
	assert_int_equal(roofline_init(roofline, view, 1, peaks_text ? &peaks : NULL), 0);
}

static const struct roofline_row *row_of(const struct roofline *roofline, const char *name)
{
	array_foreach (&roofline->rows, row) {
		if (strcmp(intern_get(&roofline->strings, row->name), name) == 0)
			return row;
	}
	return NULL;
}

/* linear calls addmm, which alone counts; its add launches a kernel of its own. */
static void work_belongs_to_one_operator(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_roofline_ struct roofline roofline = {0};
	const struct roofline_row *addmm;

	example_operator(trace, "aten::linear", 0, 100, "[[1000, 1000], [1000, 1000], [1000]]");
	example_operator(trace, "aten::addmm", 10, 50, "[[1000], [1000, 1000], [1000, 1000]]");
	/* Inside of it, and a part of it. */
	example_operator(trace, "aten::copy_", 20, 10, "[[1000, 1000], [1000]]");
	example_launch(trace, "copy", 7, 22 * US, US, 40 * US, 10 * US, 1);
	example_launch(trace, "ampere_sgemm", 7, 35 * US, US, 50 * US, 190 * US, 2);
	example_operator(trace, "aten::add", 70, 20, "[[1000, 1000], [1000]]");
	example_launch(trace, "add", 7, 75 * US, US, 240 * US, 20 * US, 3);
	example_launch(trace, "alone", 7, 200 * US, US, 260 * US, 30 * US, 4);
	init(&roofline, &view, trace, "fp32=20,tbps=2");
	assert_false(roofline.is_cpu);
	assert_int_equal(roofline.rows.count, 2);
	assert_int_equal(roofline.work_ns, 250 * US);
	assert_int_equal(roofline.in_operators_ns, 220 * US);
	assert_int_equal(roofline.known_ns, 220 * US);
	addmm = row_of(&roofline, "aten::addmm");
	assert_non_null(addmm);
	assert_int_equal(addmm->works, 2);
	assert_int_equal(addmm->time_ns, 200 * US);
	assert_int_equal(addmm->flop, 2000000000);
	assert_int_equal(addmm->bytes, 12004000);
	/* 2e9 / 20e12 = 100 µs, 12e6 / 2e12 = 6 µs */
	assert_int_equal(addmm->bound, ROOFLINE_COMPUTE);
	assert_int_equal(addmm->roof_ns, 100 * US);
	assert_int_equal(addmm->saves_ns, 100 * US);
	assert_int_equal(row_of(&roofline, "aten::add")->bound, ROOFLINE_MEMORY);
	assert_string_equal(
		intern_get(&roofline.strings, roofline.operators.items[0].name), "aten::addmm");
}

/* Without an operator below it, linear has the work. */
static void composite_operators_count_where_nothing_below_does(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_roofline_ struct roofline roofline = {0};

	example_operator(trace, "aten::linear", 0, 100, "[[10, 10], [10, 10], [10]]");
	example_operator(trace, "aten::add", 20, 10, "[[10, 10], [10]]");
	example_launch(trace, "k", 7, 22 * US, US, 40 * US, 3 * US, 1);
	init(&roofline, &view, trace, NULL);
	assert_int_equal(roofline.rows.count, 1);
	assert_non_null(row_of(&roofline, "aten::linear"));
	assert_false(roofline.has_peaks);
	assert_true(isnan(roofline.rows.items[0].roof_ns));
	assert_int_equal(roofline.rows.items[0].bound, ROOFLINE_UNKNOWN);
}

static void short_kernels_are_bound_by_latency_and_fast_ones_above(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_roofline_ struct roofline roofline = {0};
	const struct roofline_row *row;

	example_operator(trace, "aten::add", 0, 10, "[[10, 10], [10]]");
	example_launch(trace, "k", 7, 2 * US, US, 40 * US, 5 * US, 1);
	example_operator(trace, "aten::mul", 20, 10, "[[1000, 1000], [1000, 1000]]");
	example_launch(trace, "k", 7, 22 * US, US, 60 * US, 5 * US, 2);
	init(&roofline, &view, trace, "tflops=20,tbps=2");
	row = row_of(&roofline, "aten::add");
	assert_int_equal(row->bound, ROOFLINE_LATENCY);
	assert_int_equal(row->saves_ns, 5 * US - ROOFLINE_KERNEL_NS);
	assert_false(row->is_above);
	/* 12 MB in 5 µs are 2.4 TB/s. */
	row = row_of(&roofline, "aten::mul");
	assert_true(row->is_above);
	assert_int_equal(row->saves_ns, 0);
}

/* FP32 where a kernel's name says TF32 is not the same row, nor the same peak. */
static void kernels_tell_tf32(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_roofline_ struct roofline roofline = {0};

	example_operator(trace, "aten::mm", 0, 10, "[[1000, 1000], [1000, 1000]]");
	example_launch(
		trace, "sm80_xmma_gemm_f32f32_tf32f32_f32_nn", 7, 2 * US, US, 40 * US, 100 * US, 1);
	example_operator(trace, "aten::mm", 20, 10, "[[1000, 1000], [1000, 1000]]");
	example_launch(trace, "ampere_sgemm_128x64_nn", 7, 22 * US, US, 200 * US, 300 * US, 2);
	init(&roofline, &view, trace, "fp32=20,tf32=150,tbps=2");
	assert_int_equal(roofline.rows.count, 2);
	assert_int_equal(roofline.rows.items[0].dtype, OP_FP32);
	assert_int_equal(roofline.rows.items[1].dtype, OP_TF32);
	assert_int_equal(roofline.rows.items[0].roof_ns, 100 * US);
}

static void steps_have_utilisations(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_roofline_ struct roofline roofline = {0};
	const struct roofline_step *step;

	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#3", EXAMPLE_PID, 0, 200 * US, 0);
	example_operator(trace, "aten::mm", 10, 10, "[[1000, 1000], [1000, 1000]]");
	/* Runs after the step that it was called in. */
	example_launch(trace, "gemm", 7, 12 * US, US, 220 * US, 150 * US, 1);
	example_host(
		trace, TRACE_USER_ANNOTATION, "ProfilerStep#4", EXAMPLE_PID, 200 * US, 400 * US, 0);
	init(&roofline, &view, trace, "fp32=20,tbps=2");
	assert_int_equal(roofline.steps.count, 2);
	step = &roofline.steps.items[0];
	assert_int_equal(step->number, 3);
	assert_int_equal(step->flop, 2000000000);
	assert_true(fabs(step->mfu - 0.5) < 1e-9);
	assert_true(fabs(step->mbu - 0.03) < 1e-9);
	assert_int_equal(roofline.steps.items[1].flop, 0);
	assert_true(fabs(roofline.steps.items[1].mfu) < 1e-9);
}

/* Of threads those operators count that are closed, or call none. */
static void traces_without_devices_have_the_time_of_threads(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_roofline_ struct roofline roofline = {0};

	example_operator(trace, "aten::linear", 0, 100, "[[10, 10], [10, 10], [10]]");
	example_operator(trace, "aten::addmm", 10, 50, "[\n  [10],[10,\t10], [10, 10]]");
	example_operator(trace, "aten::expand", 12, 5, "[[10]]");
	example_operator(trace, "aten::view", 70, 5, "[[10]]");
	init(&roofline, &view, trace, NULL);
	assert_true(roofline.is_cpu);
	assert_int_equal(roofline.rows.count, 2);
	assert_int_equal(row_of(&roofline, "aten::addmm")->time_ns, 50 * US);
	assert_string_equal(intern_get(&roofline.strings, row_of(&roofline, "aten::addmm")->dims),
		"[[10], [10, 10], [10, 10]]");
	assert_int_equal(row_of(&roofline, "aten::view")->time_ns, 5 * US);
	assert_int_equal(roofline.steps.count, 1);
	assert_int_equal(roofline.steps.items[0].number, (int64_t)ROOFLINE_NO_STEP);
	assert_int_equal(roofline.steps.items[0].flop, 2000);
	assert_int_equal(
		roofline.steps.items[0].end_ns - roofline.steps.items[0].start_ns, 100 * US);
}

static void traces_without_sizes_have_none(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_roofline_ struct roofline roofline = {0};

	example_host(trace, TRACE_CPU_OP, "aten::mm", EXAMPLE_PID, 0, 10 * US, 0);
	init(&roofline, &view, trace, NULL);
	assert_false(roofline.has_shapes);
	assert_int_equal(roofline.rows.count, 0);
}

static void devices_are_known_by_their_names(void **state)
{
	static const struct {
		const char *name;
		double bf16, bytes;
	} known[] = {
		{"NVIDIA A100-SXM4-80GB", 312e12, 2.039e12},
		{"NVIDIA A100-SXM4-40GB", 312e12, 1.555e12},
		{"NVIDIA A100 80GB PCIe", 312e12, 1.935e12},
		{"NVIDIA H100 80GB HBM3", 989.4e12, 3.35e12},
		{"NVIDIA H100 PCIe", 756e12, 2e12},
		{"NVIDIA H200", 989.4e12, 4.8e12},
		{"NVIDIA B200", 2250e12, 8e12},
		{"NVIDIA L4", 121e12, 0.3e12},
		{"NVIDIA L40S", 362.05e12, 0.864e12},
		{"NVIDIA GeForce RTX 4090", 165.2e12, 1.008e12},
		{"Tesla V100-SXM2-32GB", 0, 0.9e12},
		{"Tesla T4", 0, 0.32e12},
		{"AMD Instinct MI250X", 191.5e12, 1.6384e12},
		{"AMD Instinct MI300X", 1307.4e12, 5.3e12},
		{"AMD Instinct MI325X", 1307.4e12, 6e12},
	};
	struct peaks peaks;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!peaks_of_device(&peaks, known[i].name))
			fail_msg("%s is not known", known[i].name);
		assert_true(fabs(peaks.flops[OP_BF16] - known[i].bf16) < 1e6);
		assert_true(fabs(peaks.bytes_per_s - known[i].bytes) < 1e3);
		assert_non_null(peaks.source);
	}
	assert_false(peaks_of_device(&peaks, "AMD Radeon Graphics"));
	assert_false(peaks_of_device(&peaks, "NVIDIA L400"));
	assert_false(peaks_of_device(&peaks, ""));
}

static void peaks_can_be_given(void **state)
{
	static const char *const wrong[] = {"", "tflops", "tflops=", "tflops=0", "tflops=-1",
		"tflops=x", "bf17=3", "tbps=2,", "tflops=312;tbps=2", "tbps=nan", "tbps=inf"};
	struct peaks peaks, table;
	struct errmsg err;

	assert_int_equal(peaks_parse(&peaks, "tflops=100,bf16=200,tbps=1.5", NULL), 0);
	assert_true(fabs(peaks.flops[OP_FP32] - 100e12) < 1);
	assert_true(fabs(peaks.flops[OP_BF16] - 200e12) < 1);
	assert_int_equal(peaks_parse(&peaks, "bf16=200,tflops=100", NULL), 0);
	assert_true(fabs(peaks.flops[OP_BF16] - 200e12) < 1);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(peaks_parse(&peaks, wrong[i], &err), -EINVAL);
	assert_true(peaks_of_device(&table, "NVIDIA H200"));
	assert_int_equal(peaks_parse(&peaks, "tbps=4", NULL), 0);
	peaks_override(&table, &peaks);
	assert_true(fabs(table.bytes_per_s - 4e12) < 1);
	assert_true(fabs(table.flops[OP_BF16] - 989.4e12) < 1e6);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_belongs_to_one_operator),
		cmocka_unit_test(composite_operators_count_where_nothing_below_does),
		cmocka_unit_test(short_kernels_are_bound_by_latency_and_fast_ones_above),
		cmocka_unit_test(kernels_tell_tf32),
		cmocka_unit_test(steps_have_utilisations),
		cmocka_unit_test(traces_without_devices_have_the_time_of_threads),
		cmocka_unit_test(traces_without_sizes_have_none),
		cmocka_unit_test(devices_are_known_by_their_names),
		cmocka_unit_test(peaks_can_be_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
