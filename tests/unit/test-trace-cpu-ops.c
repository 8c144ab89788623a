/* SPDX-License-Identifier: Apache-2.0 */
/* Operators by the time that threads spent in them, on cases computed by hand. */
#include "trace-example.h"

#include "analyses/program/cpu_ops.h"

#define US 1000

static void view(struct trace_view *view, struct trace *trace)
{
	static const struct trace_view_options options;

	example_trace_finish(trace);
	assert_int_equal(trace_view_init(view, trace, 0, &options), 0);
}

static const struct trace_cpu_op *cpu_op_of(const struct trace_cpu_ops *ops,
	const struct trace *trace, uint32_t thread, const char *name)
{
	array_foreach (&ops->rows, row) {
		if (row->thread == thread && strcmp(trace_text(trace, row->name), name) == 0)
			return row;
	}
	fail_msg("no such operator: %s", name);
	return NULL;
}

/* Thread 100: a step of 0..1000 us, linear 100..400 with mm 150..350 in it; linear in itself. */
static struct trace *two_threads(void)
{
	struct trace *trace = example_trace_new();

	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#1", 100, 0, 1000 * US, 0);
	example_host(trace, TRACE_CPU_OP, "linear", 100, 100 * US, 300 * US, 0);
	example_host(trace, TRACE_CPU_OP, "mm", 100, 150 * US, 200 * US, 0);
	example_host(trace, TRACE_CPU_OP, "linear", 100, 200 * US, 50 * US, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "forward", 100, 500 * US, 100 * US, 0);
	example_host(trace, TRACE_PYTHON_FUNCTION, "main.py(1): f", 100, 0, 1000 * US, 0);
	/* Ends after the one that it began in. */
	example_host(trace, TRACE_CPU_OP, "first", 101, 350 * US, 100 * US, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "gloo:all_reduce", 101, 400 * US, 100 * US, 0);
	return trace;
}

static void threads_have_operators_by_self_and_total_time(void **state)
{
	_cleanup_trace_ struct trace *trace = two_threads();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_trace_cpu_ops_ struct trace_cpu_ops ops = {0};
	const struct trace_cpu_op *op;

	view(&own, trace);
	assert_int_equal(trace_cpu_ops_init(&ops, &own), 0);
	assert_int_equal(ops.rows.count, 5);
	assert_int_equal(ops.threads.count, 2);
	op = cpu_op_of(&ops, trace, 0, "linear");
	assert_int_equal(op->count, 2);
	assert_int_equal(op->total_ns, 300 * US);
	assert_int_equal(op->self_ns, 150 * US);
	op = cpu_op_of(&ops, trace, 0, "mm");
	assert_true(op->total_ns == 200 * US && op->self_ns == 150 * US);
	assert_false(cpu_op_of(&ops, trace, 0, "forward")->is_operator);
	op = cpu_op_of(&ops, trace, 1, "first");
	assert_true(op->total_ns == 100 * US && op->self_ns == 50 * US);
	op = cpu_op_of(&ops, trace, 1, "gloo:all_reduce");
	assert_true(op->is_operator && op->self_ns == 100 * US);
	assert_int_equal(ops.threads.items[0].in_operators_ns, 300 * US);
	assert_int_equal(ops.threads.items[1].in_operators_ns, 150 * US);
	/* 100..400 and 350..500 us of 0..1000 us. */
	assert_int_equal(ops.in_operators_ns, 400 * US);
	assert_int_equal(ops.end_ns - ops.start_ns, 1000 * US);
}

/* Traces of PyTorch 1 without Kineto have no categories. */
static void rows_without_a_category_are_operators(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_trace_cpu_ops_ struct trace_cpu_ops ops = {0};
	uint32_t row = example_host(trace, TRACE_OTHER, "aten::zeros", 1, 0, 10 * US, 0);

	trace->events.items[row].category_name = 0;
	example_host(trace, TRACE_OTHER, "of another tool", 1, 10 * US, 10 * US, 0);
	view(&own, trace);
	assert_int_equal(trace_cpu_ops_init(&ops, &own), 0);
	assert_int_equal(ops.rows.count, 1);
	assert_string_equal(trace_cpu_op_kind(&ops.rows.items[0]), "operator");
	assert_int_equal(ops.in_operators_ns, 10 * US);
}

/* Twenty operators of `length_us` at every `every_us`. */
static unsigned cpu_advice(const char *name, int64_t length_us, int64_t every_us)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	struct trace_cpu_summary summary;

	for (int64_t i = 0; i < 20; i++)
		example_host(trace, TRACE_CPU_OP, name, 100, i * every_us * US, length_us * US, 0);
	view(&own, trace);
	assert_int_equal(trace_cpu_summary_init(&summary, &own, 1), 0);
	assert_int_equal(summary.operators, 20);
	assert_string_equal(summary.heaviest[0].name, name);
	assert_int_equal(summary.heaviest[0].self_ns, summary.self_ns);
	assert_null(summary.heaviest[1].name);
	return summary.advice;
}

static void advice_of_cpu_traces_is_by_figures(void **state)
{
	const unsigned outside = TRACE_CPU_ADVICE_OUTSIDE, heavy = TRACE_CPU_ADVICE_HEAVY;

	assert_int_equal(cpu_advice("aten::mm", 90, 100), heavy);
	assert_int_equal(cpu_advice("aten::mm", 40, 100), outside | heavy);
	assert_int_equal(cpu_advice("aten::mm", 9, 10), TRACE_CPU_ADVICE_SHORT);
	assert_int_equal(cpu_advice("gloo:all_reduce", 90, 100), TRACE_CPU_ADVICE_COMMUNICATION);
	for (unsigned bit = 1; bit < TRACE_CPU_ADVICE_END; bit <<= 1)
		assert_non_null(trace_cpu_advice_name((enum trace_cpu_advice)bit));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_have_operators_by_self_and_total_time),
		cmocka_unit_test(rows_without_a_category_are_operators),
		cmocka_unit_test(advice_of_cpu_traces_is_by_figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
