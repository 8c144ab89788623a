/* SPDX-License-Identifier: Apache-2.0 */
/* Steps, ranges and ranks of traces: a model of what their programs say of themselves. */
#include "trace-example.h"

#include "analyses/program/range_use.h"
#include "analyses/program/rank_use.h"
#include "analyses/program/step_use.h"
#include "analyses/program/trace_programs.h"

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
	_cleanup_model_ struct model *model = NULL;
	_cleanup_step_use_ struct step_use steps = {0};
	_cleanup_range_use_ struct range_use ranges = {0};

	(void)state;
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_int_equal(trace_programs_new(&model, &view, 1), 0);
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
	_cleanup_model_ struct model *model = NULL;
	_cleanup_rank_use_ struct rank_use ranks = {0};
	_cleanup_range_use_ struct range_use ranges = {0};

	(void)state;
	assert_int_equal(trace_view_init(&views[0], first, 0, &options), 0);
	assert_int_equal(trace_view_init(&views[1], second, 1, &options), 0);
	assert_int_equal(trace_programs_new(&model, views, 2), 0);
	assert_int_equal(rank_use_init(&ranks, model), 0);
	assert_true(ranks.rows.items[0].is_step);
	assert_int_equal(ranks.times.items[ranks.rows.items[0].slowest].rank, 1);
	assert_int_equal(rank_row_spread_ns(&ranks, &ranks.rows.items[0]), 50);
	assert_int_equal(range_use_init(&ranges, model, NULL), 0);
	assert_int_equal(ranges.rows.items[0].device_busy_ns, 80);
	trace_view_done(&views[0]);
	trace_view_done(&views[1]);
}

static void nothing(void **state)
{
	const struct trace_view_options options = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_model_ struct model *model = NULL;

	(void)state;
	example_trace_finish(trace);
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_int_equal(trace_programs_new(&model, &view, 1), 0);
	assert_int_equal(model->processes.count, 1);
	assert_int_equal(model->steps.count + model->ranges.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_and_ranges),
		cmocka_unit_test(ranks_have_devices_of_their_own),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
