/* SPDX-License-Identifier: Apache-2.0 */
/* Which call captured a graph's node: of captures and replays made by hand. */
#include "trace-example.h"

#include "analyses/program/ops.h"
#include "analyses/roofline/units.h"
#include "analyses/trace_narrow.h"
#include "analyses/trace_view.h"
#include "model/trace_graphs.h"

#define TID EXAMPLE_PID

/* A kernel of a capture: its operator, the size of its input, and what the call says. */
struct captured {
	const char *op, *dims, *kernel;
};

static uint32_t add_op(struct trace *trace, struct trace_op op)
{
	assert_int_equal(array_append(&trace->ops, op), 0);
	return (uint32_t)trace->ops.count - 1;
}

/* Returns the row of the first call; calls are 10 ns apart, each in its operator. */
static uint32_t add_capture(struct trace *trace, int64_t start_ns, bool is_named,
	const struct captured *items, size_t count)
{
	uint32_t first = MODEL_NONE;

	example_host(trace, TRACE_RUNTIME, "cudaStreamBeginCapture", TID, start_ns, 2, 0);
	for (size_t i = 0; i < count; i++) {
		int64_t at_ns = start_ns + 10 * (int64_t)(i + 1);
		struct trace_op op = trace_no_op, call = trace_no_op;
		uint32_t row;

		op.input_dims = example_text(trace, items[i].dims);
		row = example_host(trace, TRACE_CPU_OP, items[i].op, TID, at_ns, 8, 0);
		trace->events.items[row].detail = add_op(trace, op);
		/* A correlation that no work has. */
		row = example_host(trace, TRACE_RUNTIME, "cudaLaunchKernel", TID, at_ns + 2, 3,
			(uint64_t)(1000000 + at_ns));
		if (is_named) {
			call.kernel = example_text(trace, items[i].kernel);
			trace->events.items[row].detail = add_op(trace, call);
		}
		if (first == MODEL_NONE)
			first = row;
	}
	example_host(trace, TRACE_RUNTIME, "cudaStreamEndCapture", TID,
		start_ns + 10 * (int64_t)(count + 1), 2, 0);
	return first;
}

/* Returns the row of the first node. */
static uint32_t add_replay(struct trace *trace, int64_t start_ns, uint64_t correlation,
	uint64_t graph, const char *const *names, size_t count)
{
	uint32_t first = MODEL_NONE;

	example_host(trace, TRACE_RUNTIME, "cudaGraphLaunch", TID, start_ns, 5, correlation);
	for (size_t i = 0; i < count; i++) {
		uint32_t row = example_device(trace, TRACE_KERNEL, names[i], 0, 7,
			start_ns + 10 + 10 * (int64_t)i, 8, correlation);
		struct trace_work *work = &trace->works.items[trace->events.items[row].detail];

		work->graph = graph;
		work->graph_node = graph ? i + 1 : 0;
		if (first == MODEL_NONE)
			first = row;
	}
	return first;
}

static const struct captured small[] = {
	{"aten::mm", "[[1]]", "gemm"}, {"aten::add", "[[1]]", "add"}};
static const struct captured large[] = {
	{"aten::mm", "[[8]]", "gemm"}, {"aten::add", "[[8]]", "add"}};
static const char *const nodes[] = {"gemm", "add"};

static const char *operator_of(const struct trace *trace, uint32_t row)
{
	uint32_t origin = trace_origin(trace, &trace->events.items[row]);
	uint32_t parent;

	assert_int_not_equal(origin, MODEL_NONE);
	parent = trace_parents(trace, false)[origin];
	return parent == MODEL_NONE ? "" : trace_text(trace, trace->events.items[parent].name);
}

static void nodes_belong_to_what_captured_them(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	uint32_t row;

	add_capture(trace, 100, false, small, 2);
	row = add_replay(trace, 1000, 1, 0, nodes, 2);
	add_replay(trace, 2000, 2, 0, nodes, 2);
	example_trace_finish(trace);
	assert_int_equal(trace_join_graphs(trace, trace), 4);
	assert_string_equal(operator_of(trace, row), "aten::mm");
	assert_string_equal(operator_of(trace, row + 1), "aten::add");
	assert_string_equal(
		trace_text(trace,
			trace->events.items[trace_launch(trace, &trace->events.items[row])].name),
		"cudaGraphLaunch");
	assert_int_equal(trace->replays.captures, 1);
	assert_int_equal(trace->replays.replays, 2);
	assert_int_equal(trace->replays.nodes, 4);
	assert_int_equal(trace->replays.known_nodes, 4);
}

/* Operators count once for each replay, with the work of it. */
static void each_replay_is_an_operator(void **state)
{
	static const struct trace_view_options options;
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view;
	_cleanup_trace_ops_ struct trace_ops ops;
	struct roofline_units units;

	add_capture(trace, 100, false, small, 2);
	add_replay(trace, 1000, 1, 0, nodes, 2);
	add_replay(trace, 2000, 2, 0, nodes, 2);
	add_replay(trace, 3000, 3, 0, nodes, 2);
	example_trace_finish(trace);
	assert_int_equal(trace_join_graphs(trace, trace), 6);
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_int_equal(trace_ops_init(&ops, &view), 0);
	assert_int_equal(ops.rows.count, 2);
	assert_string_equal(trace_text(trace, ops.rows.items[0].name), "aten::add");
	assert_int_equal(ops.rows.items[0].count, 3);
	assert_int_equal(ops.rows.items[0].work_ns, 24);
	assert_int_equal(ops.rows.items[0].launch_delay_ns, 6);
	assert_int_equal(ops.rows.items[0].work_delay_ns, 60); /* from the graph's launch on */
	assert_int_equal(roofline_units_init(&units, &view, false), 0);
	assert_int_equal(units.items.count, 6);
	roofline_units_done(&units);
}

static void names_choose_the_capture(void **state)
{
	static const struct captured other[] = {
		{"aten::mm", "[[8]]", "gemm"}, {"aten::mul", "[[8]]", "mul"}};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	uint32_t row;

	add_capture(trace, 100, true, other, 2);
	add_capture(trace, 200, true, small, 2);
	row = add_replay(trace, 1000, 1, 0, nodes, 2);
	example_trace_finish(trace);
	assert_int_equal(trace_join_graphs(trace, trace), 2);
	assert_string_equal(operator_of(trace, row + 1), "aten::add");
}

/* A call that gave no node is passed over; which of two alike gave one is not known. */
static void calls_without_nodes_are_passed_over(void **state)
{
	static const struct captured with_query[] = {{"aten::mm", "[[1]]", "gemm"},
		{"aten::query", "[[1]]", "query"}, {"aten::add", "[[1]]", "add"}};
	static const struct captured with_two[] = {{"aten::mm", "[[1]]", "gemm"},
		{"aten::add", "[[1]]", "add"}, {"aten::add", "[[2]]", "add"}};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_ struct trace *unclear = example_trace_new();
	uint32_t row;

	add_capture(trace, 100, true, with_query, 3);
	row = add_replay(trace, 1000, 1, 0, nodes, 2);
	example_trace_finish(trace);
	assert_int_equal(trace_join_graphs(trace, trace), 2);
	assert_string_equal(operator_of(trace, row + 1), "aten::add");

	add_capture(unclear, 100, true, with_two, 3);
	row = add_replay(unclear, 1000, 1, 0, nodes, 2);
	example_trace_finish(unclear);
	assert_int_equal(trace_join_graphs(unclear, unclear), 1);
	assert_string_equal(operator_of(unclear, row), "aten::mm");
	assert_string_equal(operator_of(unclear, row + 1), "");
	assert_int_equal(unclear->replays.unclear_nodes, 1);
}

static void captures_that_differ_are_no_guess(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_ struct trace *alike = example_trace_new();

	add_capture(trace, 100, false, small, 2);
	add_capture(trace, 200, false, large, 2);
	add_replay(trace, 1000, 1, 0, nodes, 2);
	example_trace_finish(trace);
	assert_int_equal(trace_join_graphs(trace, trace), 0);
	assert_int_equal(trace->replays.unknown[TRACE_REPLAY_SEVERAL], 1);

	add_capture(alike, 100, false, small, 2);
	add_capture(alike, 200, false, small, 2);
	add_replay(alike, 1000, 1, 0, nodes, 2);
	example_trace_finish(alike);
	assert_int_equal(trace_join_graphs(alike, alike), 2);
	assert_int_equal(alike->replays.alike, 1);
}

/* Pieces of a model: those between two that are known are of the captures between. */
static void neighbours_decide(void **state)
{
	static const char *const begin[] = {"embed"}, *const end[] = {"head"};
	static const struct captured first = {"aten::embedding", "[[1]]", "embed"};
	static const struct captured last = {"aten::linear", "[[1]]", "head"};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	uint32_t calls[2], rows[2];

	add_capture(trace, 100, true, &first, 1);
	calls[0] = add_capture(trace, 200, true, small, 2);
	calls[1] = add_capture(trace, 300, true, large, 2);
	add_capture(trace, 400, true, &last, 1);
	add_replay(trace, 1000, 1, 0, begin, 1);
	rows[0] = add_replay(trace, 2000, 2, 0, nodes, 2);
	rows[1] = add_replay(trace, 3000, 3, 0, nodes, 2);
	add_replay(trace, 4000, 4, 0, end, 1);
	example_trace_finish(trace);
	assert_int_equal(trace_join_graphs(trace, trace), 6);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(trace_origin(trace, &trace->events.items[rows[i]]), calls[i]);
}

/* The graph's id: of one replay it is known which capture it is. */
static void replays_of_one_graph_are_of_one_capture(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	uint32_t row;

	add_capture(trace, 100, false, small, 2);
	add_replay(trace, 1000, 1, 5, nodes, 2);
	add_capture(trace, 2000, false, large, 2);
	row = add_replay(trace, 3000, 2, 5, nodes, 2);
	add_replay(trace, 4000, 3, 6, nodes, 2);
	example_trace_finish(trace);
	assert_int_equal(trace_join_graphs(trace, trace), 4);
	assert_string_equal(operator_of(trace, row), "aten::mm");
	assert_int_equal(trace->replays.unknown[TRACE_REPLAY_SEVERAL], 1);
}

static void work_on_several_streams_needs_names(void **state)
{
	for (int is_named = 0; is_named < 2; is_named++) {
		_cleanup_trace_ struct trace *trace = example_trace_new();
		uint32_t row;

		add_capture(trace, 100, is_named, small, 2);
		row = add_replay(trace, 1000, 1, 0, nodes, 2);
		trace->works.items[trace->events.items[row + 1].detail].stream = 8;
		trace->events.items[row + 1].start_ns = 1001; /* before the other */
		example_trace_finish(trace);
		assert_int_equal(trace_join_graphs(trace, trace), is_named ? 2 : 0);
		assert_int_equal(trace->replays.unknown[TRACE_REPLAY_STREAMS], !is_named);
		assert_string_equal(operator_of(trace, row + 1), is_named ? "aten::add" : "");
	}
}

static void what_fits_no_capture_says_why(void **state)
{
	static const char *const others[] = {"add", "gemm"};
	_cleanup_trace_ struct trace *trace = example_trace_new();

	add_replay(trace, 50, 1, 0, nodes, 2);
	add_capture(trace, 100, true, small, 2);
	add_replay(trace, 1000, 2, 0, others, 2);
	/* Cut off: it never ended. */
	example_host(trace, TRACE_RUNTIME, "cudaStreamBeginCapture", TID, 2000, 2, 0);
	example_host(trace, TRACE_RUNTIME, "cudaLaunchKernel", TID, 2010, 2, 99);
	example_trace_finish(trace);
	assert_int_equal(trace_join_graphs(trace, trace), 0);
	assert_int_equal(trace->replays.unknown[TRACE_REPLAY_NO_CAPTURE], 1);
	assert_int_equal(trace->replays.unknown[TRACE_REPLAY_NO_FIT], 1);
	assert_int_equal(trace->replays.captures, 1);
}

/* The capture's rows come with it, at their own times, and count as nothing but origins. */
static void captures_of_another_trace(void **state)
{
	static const struct trace_view_options options;
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_ struct trace *captured = example_trace_new();
	_cleanup_trace_view_ struct trace_view view;
	size_t own;
	uint32_t row;

	captured->base_ns = 5000;
	trace->base_ns = 10000;
	example_text(captured, "a string that shifts the others");
	add_capture(captured, 100, true, small, 2);
	example_host(captured, TRACE_CPU_OP, "aten::other", TID, 900, 5, 0);
	example_trace_finish(captured);
	row = add_replay(trace, 1000, 1, 0, nodes, 2);
	example_trace_finish(trace);
	own = trace->events.count;
	assert_int_equal(trace_join_graphs(trace, trace), 0);
	assert_int_equal(trace->replays.unknown[TRACE_REPLAY_NO_CAPTURE], 1);
	assert_int_equal(trace_join_graphs(trace, captured), 2);
	assert_int_equal(trace->replays.unknown[TRACE_REPLAY_NO_CAPTURE], 0);
	assert_int_equal(trace->replays.replays, 1);
	assert_int_equal(trace->replays.nodes, 2);
	assert_string_equal(operator_of(trace, row), "aten::mm");
	assert_int_equal(trace->events.count, own + 4); /* two calls, two operators */
	assert_int_equal(trace->capture_rows, 4);
	assert_int_equal(trace->events.items[own].start_ns, 112 - 5000);
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_int_equal(view.works.count, 2);
	assert_int_not_equal(view.works.items[0].origin, view.works.items[0].launch);
	for (size_t i = own; i < trace->events.count; i++)
		assert_false(trace_view_has(&view, &trace->events.items[i]));
}

/* A trace that has no capture that fits stays what it is. */
static void other_traces_give_nothing(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_ struct trace *later = example_trace_new();
	size_t own;

	add_capture(later, 5000, true, small, 2);
	example_trace_finish(later);
	add_replay(trace, 1000, 1, 0, nodes, 2);
	example_trace_finish(trace);
	own = trace->events.count;
	assert_int_equal(trace_join_graphs(trace, trace), 0);
	assert_int_equal(trace_join_graphs(trace, later), 0);
	assert_int_equal(trace->events.count, own);
	assert_int_equal(trace->replays.replays, 1);
	assert_int_equal(trace->replays.unknown[TRACE_REPLAY_NO_CAPTURE], 1);
}

/* --time keeps what captured the work that is left, and does not show it. */
static void filters_keep_origins(void **state)
{
	static const struct trace_view_options options;
	const struct selection selection = {.time = "0.0000018.."};
	struct model *model = model_new();
	struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view;
	struct errmsg err;

	assert_non_null(model);
	add_capture(trace, 100, false, small, 2);
	add_replay(trace, 1000, 1, 0, nodes, 2);
	add_replay(trace, 2000, 2, 0, nodes, 2);
	example_trace_finish(trace);
	assert_int_equal(trace_join_graphs(trace, trace), 4);
	assert_int_equal(array_append(&model->traces, trace), 0);
	assert_int_equal(trace_narrow(&selection, model, &err), 0);
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_int_equal(view.works.count, 2);
	assert_string_equal(operator_of(trace, view.works.items[0].row), "aten::mm");
	assert_int_equal(trace->capture_rows, 4);
	array_foreach (&trace->events, event)
		assert_int_equal(event->is_capture, event->start_ns < 1800);
	model_free(model);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_belong_to_what_captured_them),
		cmocka_unit_test(each_replay_is_an_operator),
		cmocka_unit_test(names_choose_the_capture),
		cmocka_unit_test(calls_without_nodes_are_passed_over),
		cmocka_unit_test(captures_that_differ_are_no_guess),
		cmocka_unit_test(neighbours_decide),
		cmocka_unit_test(replays_of_one_graph_are_of_one_capture),
		cmocka_unit_test(work_on_several_streams_needs_names),
		cmocka_unit_test(what_fits_no_capture_says_why),
		cmocka_unit_test(captures_of_another_trace),
		cmocka_unit_test(other_traces_give_nothing),
		cmocka_unit_test(filters_keep_origins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
