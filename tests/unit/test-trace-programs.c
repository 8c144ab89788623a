/* SPDX-License-Identifier: Apache-2.0 */
/* Steps, ranges and ranks of traces: a model of what their programs say of themselves. */
#include "trace-example.h"

#include "model-example.h"

#include "analyses/program/range_use.h"
#include "analyses/program/ranks.h"
#include "analyses/program/step_use.h"
#include "analyses/program/trace_programs.h"
#include "model/trace_capture.h"

/* Two steps with a kernel each, the first of which runs late. */
static struct trace *make_trace(uint32_t rank, int64_t late_ns)
{
	struct trace *trace = example_trace_new();

	trace->rank = rank;
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#7", EXAMPLE_PID, 1000, 900, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "forward", EXAMPLE_PID, 1010, 300, 0);
	example_launch(trace, "gemm", 7, 1020, 10, 1950, 40, 1);
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#8", EXAMPLE_PID, 2000,
		900 + late_ns, 0);
	example_host(
		trace, TRACE_USER_ANNOTATION, "a mark", EXAMPLE_PID, 2010, TRACE_NO_DURATION, 0);
	example_launch(trace, "relu", 7, 2020, 10, 2100, 60, 2);
	/* Its launch is not in the trace. */
	example_device(trace, TRACE_KERNEL, "lost", 0, 7, 2300, 500, 99);
	example_trace_finish(trace);
	return trace;
}

static void steps_and_ranges(void **state)
{
	const struct trace_view_options options = {0};
	_cleanup_trace_ struct trace *trace = make_trace(MODEL_NONE, 0);
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_model_ struct model *model = calloc(1, sizeof(*model));
	_cleanup_step_use_ struct step_use steps = {0};
	_cleanup_range_use_ struct range_use ranges = {0};

	(void)state;
	assert_non_null(model);
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_int_equal(trace_programs_fill(model, &view, 1), 0);
	assert_int_equal(model->processes.items[0].pid, EXAMPLE_PID);
	assert_int_equal(model->processes.items[0].rank, MODEL_NONE);
	assert_int_equal(step_use_init(&steps, model, NULL), 0);
	assert_int_equal(steps.rows.count, 1);
	assert_string_equal(steps.rows.items[0].name, "ProfilerStep");
	assert_int_equal(steps.rows.items[0].count, 2);
	assert_int_equal(steps.rows.items[0].total_ns, 1800);
	assert_int_equal(model->steps.items[0].number, 7);
	assert_int_equal(steps.costs.items[0].device_busy_ns, 40);
	assert_int_equal(steps.costs.items[1].device_busy_ns, 60);
	assert_int_equal(range_use_init(&ranges, model, NULL), 0);
	assert_int_equal(ranges.rows.count, 2);
	assert_string_equal(ranges.rows.items[0].name, "forward");
	assert_int_equal(ranges.rows.items[0].works, 1);
	assert_int_equal(ranges.rows.items[0].device_busy_ns, 40);
	assert_string_equal(ranges.rows.items[1].name, "a mark");
	assert_true(ranges.rows.items[1].is_mark);
}

static void ranks_have_devices_of_their_own(void **state)
{
	const struct trace_view_options options = {0};
	_cleanup_trace_ struct trace *first = make_trace(0, 0), *second = make_trace(1, 100);
	struct trace_view views[2];
	_cleanup_model_ struct model *model = calloc(1, sizeof(*model));
	_cleanup_ranks_ struct ranks ranks = {0};
	_cleanup_range_use_ struct range_use ranges = {0};

	(void)state;
	assert_non_null(model);
	assert_int_equal(trace_view_init(&views[0], first, 0, &options), 0);
	assert_int_equal(trace_view_init(&views[1], second, 1, &options), 0);
	assert_int_equal(trace_programs_fill(model, views, 2), 0);
	assert_int_equal(ranks_init(&ranks, &(struct rank_input){.model = model}), 0);
	assert_true(ranks.rows.items[0].is_step);
	assert_int_equal(ranks.times.items[ranks.rows.items[0].slowest].rank, 1);
	assert_int_equal(rank_row_spread_ns(&ranks, &ranks.rows.items[0]), 50);
	assert_int_equal(range_use_init(&ranges, model, NULL), 0);
	assert_int_equal(ranges.rows.items[0].device_busy_ns, 80);
	trace_view_done(&views[0]);
	trace_view_done(&views[1]);
}

#define MS 1000000ULL

static uint32_t thread_of(const struct model *model, uint32_t tid)
{
	for (uint32_t i = 0; i < model->threads.count; i++) {
		if (model->threads.items[i].tid == tid)
			return i;
	}
	fail_msg("there is no thread %u", tid);
	return MODEL_NONE;
}

/* Of one recording: each rank computes, then begins a collective, which ends everywhere at once. */
static struct model *make_recording(void)
{
	static const uint64_t busy_ms[] = {20, 60};
	struct capture_device_work work = {
		.kind = WIRE_DEVICE_KERNEL,
		.name = "ncclDevKernel_AllReduce_Sum_f32",
		.device = "a device",
		.launch_duration_ns = 1000,
		.end_ns = 100 * MS,
		.queue = 8,
	};
	struct example example;
	struct model *model;
	capture_id stack;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	stack = example_frames(&example, WIRE_STOP_COMPLETE,
		example_frame(&example, "main", example_mapping(&example, "/train"), 1));
	for (uint32_t i = 0; i < 2; i++) {
		work.pid = work.tid = 100 + i;
		work.launch_ns = work.start_ns = (busy_ms[i] + 10) * MS;
		work.correlation = i + 1;
		example_process(&example, work.pid, "train", 1);
		example_samples(&example, work.pid, work.tid, stack, 2 * MS, busy_ms[i]);
		assert_int_equal(model_builder_visitor.device_work(example.builder, &work), 0);
	}
	model = example_end(&example);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t thread = thread_of(model, 100 + i);
		const struct model_step step = {
			.start_ns = MS,
			.end_ns = (busy_ms[i] + 60) * MS,
			.number = 1,
			.name = "train",
			.process = model->threads.items[thread].process,
			.thread = thread,
			.window = MODEL_NONE,
		};

		model->processes.items[step.process].rank = i;
		assert_int_equal(array_append(&model->steps, step), 0);
	}
	return model;
}

static void ranks_of_one_recording(void **state)
{
	const struct trace_view_options options = {0};
	_cleanup_model_ struct model *model = make_recording();
	_cleanup_trace_ struct trace *trace = NULL;
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_ranks_ struct ranks ranks = {0};
	const struct rank_time *first;

	(void)state;
	assert_int_equal(trace_of_recording(&trace, model), 0);
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_int_equal(
		ranks_init(&ranks,
			&(struct rank_input){.model = model, .views = &view, .view_count = 1}),
		0);
	assert_int_equal(ranks.rows.count, 1);
	assert_string_equal(ranks.rows.items[0].name, "train");
	assert_int_equal(rank_row_spread_ns(&ranks, &ranks.rows.items[0]), 40 * MS);
	assert_int_equal(ranks.rows.items[0].difference, RANK_DIFFERENCE_CPU);
	assert_int_equal(ranks.rows.items[0].difference_ns, 40 * EXAMPLE_PERIOD_NS);
	first = &ranks.times.items[0];
	assert_int_equal(first->cost.samples, 20);
	assert_int_equal(first->cost.device_busy_ns, 70 * MS);

	assert_int_equal(ranks.collectives.matched, 1);
	assert_int_equal(ranks.collectives.ranks.count, 2);
	assert_int_equal(ranks.collectives.ranks.items[0].rank, 1);
	assert_int_equal(ranks.collectives.ranks.items[0].last, 1);
	assert_int_equal(ranks.collectives.ranks.items[0].caused_ns, 40 * MS);
	assert_int_equal(ranks.collectives.ranks.items[0].transfer_ns, 30 * MS);
	assert_int_equal(ranks.collectives.ranks.items[1].suffered_ns, 40 * MS);
}

static void nothing(void **state)
{
	const struct trace_view_options options = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_model_ struct model *model = calloc(1, sizeof(*model));

	(void)state;
	assert_non_null(model);
	example_trace_finish(trace);
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_int_equal(trace_programs_fill(model, &view, 1), 0);
	assert_int_equal(model->processes.count, 1);
	assert_int_equal(model->steps.count + model->ranges.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_and_ranges),
		cmocka_unit_test(ranks_have_devices_of_their_own),
		cmocka_unit_test(ranks_of_one_recording),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
