/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of graphs in a recording: the call that captured each, and the operators around it. */
#include "model-example.h"

#include "analyses/program/modules.h"
#include "analyses/program/ops.h"
#include "analyses/selection.h"
#include "model/nvtx_operator.h"
#include "model/trace_capture.h"
#include "model/windows.h"

#define PID 7
#define TID 8

static const struct capture_visitor *const build = &model_builder_visitor;

static void add_window(struct example *example, uint32_t number, uint64_t begin_ns, uint64_t end_ns)
{
	const struct capture_window window = {
		.number = number, .begin_ns = begin_ns, .end_ns = end_ns, .first_step = 1};

	assert_int_equal(build->window(example->builder, &window), 0);
}

static void add_range(
	struct example *example, const char *name, uint32_t tid, uint64_t start_ns, uint64_t end_ns)
{
	struct capture_range_event event = {.kind = CAPTURE_RANGE_BEGIN,
		.time_ns = start_ns,
		.pid = PID,
		.tid = tid,
		.track = tid,
		.domain = strcmp(name, "mlp") == 0 ? "sonde.model" : "",
		.name = name};

	assert_int_equal(build->range(example->builder, &event), 0);
	if (!end_ns)
		return;
	event.kind = CAPTURE_RANGE_END;
	event.time_ns = end_ns;
	assert_int_equal(build->range(example->builder, &event), 0);
}

static void add_launch(struct example *example, uint64_t time_ns, uint32_t tid,
	uint64_t correlation, enum wire_device_untimed untimed)
{
	const struct capture_launch launch = {.time_ns = time_ns,
		.duration_ns = 10,
		.pid = PID,
		.tid = tid,
		.correlation = correlation,
		.kind = untimed ? WIRE_DEVICE_KERNEL : WIRE_DEVICE_GRAPH,
		.untimed = untimed};

	assert_int_equal(build->launch(example->builder, &launch), 0);
}

static void add_node(struct example *example, uint64_t start_ns, uint64_t duration_ns,
	uint64_t correlation, uint64_t capture)
{
	const struct capture_device_work work = {
		.start_ns = start_ns,
		.end_ns = start_ns + duration_ns,
		.pid = PID,
		.correlation = correlation,
		.kind = WIRE_DEVICE_KERNEL,
		.name = "gemm",
		.device = "CUDA device 0",
		.gpu = 1,
		.graph = 20,
		.graph_node = 20ULL << 32 | duration_ns,
		.capture = capture,
	};

	assert_int_equal(build->device_work(example->builder, &work), 0);
}

/* Window 1 has a capture of two calls, 11 and 12, on a thread of its own; window 2 two replays, 21
 * and 22, with a node each of these calls, of none that is known, and of one that has no record. */
static void begin(struct example *example)
{
	const struct capture_device_event gpu = {
		.kind = CAPTURE_GPU, .pid = PID, .text = "A GPU", .gpu = {.number = 1}};

	example_begin(example, EXAMPLE_PERIOD_NS);
	example_process(example, PID, "serve", 0);
	example_thread(example, PID, PID, "main");
	assert_int_equal(build->device_event(example->builder, &gpu), 0);
	add_window(example, 1, 1000, 2000);
	add_window(example, 2, 5000, 9000);
	add_range(example, "capture", TID, 1100, 1900);
	add_range(example, "aten::mm, op_id = 3, sizes = [[8, 4], [4, 2]]", TID, 1200, 1300);
	add_range(example, "aten::add", TID, 1400, 1500);
	add_range(example, "aten::add", PID, 1200, 1500); /* of another thread */
	add_range(example, "serve", PID, 5000, 9000);
	add_launch(example, 1210, TID, 11, WIRE_DEVICE_CAPTURED);
	add_launch(example, 1410, TID, 12, WIRE_DEVICE_CAPTURED);
	for (uint64_t replay = 0; replay < 2; replay++) {
		uint64_t start_ns = 6000 + 1000 * replay;

		add_launch(example, start_ns, PID, 21 + replay, WIRE_DEVICE_TIMED);
		add_node(example, start_ns + 100, 50, 21 + replay, 11);
		add_node(example, start_ns + 200, 30, 21 + replay, 12);
		add_node(example, start_ns + 300, 20, 21 + replay, 0);
		add_node(example, start_ns + 400, 10, 21 + replay, 13);
	}
}

static struct model *end_windows(struct example *example, const char *text)
{
	struct window_choice choice;

	if (text) {
		assert_int_equal(window_choice_parse(text, &choice, NULL), 0);
		model_builder_choose_windows(example->builder, &choice);
	}
	return example_end(example);
}

static const struct trace_ops_row *find_op(
	const struct trace *trace, const struct trace_ops *ops, const char *name)
{
	array_foreach (&ops->rows, row) {
		if (strcmp(trace_text(trace, row->name), name) == 0)
			return row;
	}
	return NULL;
}

static void check_op(const struct trace *trace, const struct trace_ops *ops, const char *name,
	uint64_t count, int64_t work_ns)
{
	const struct trace_ops_row *row = find_op(trace, ops, name);

	assert_non_null(row);
	assert_int_equal(row->count, count);
	assert_int_equal(row->work_ns, work_ns);
}

static bool is_of_replay(const char *name)
{
	return strcmp(name, "serve") == 0 || strcmp(name, "cudaGraphLaunch") == 0;
}

/* Both replays' operators; with only_replays nothing of the capture is shown. */
static void check_rows(const struct model *model, bool only_replays)
{
	_cleanup_trace_ struct trace *trace = NULL;
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_trace_ops_ struct trace_ops ops = {0};
	size_t hidden = 0;

	assert_int_equal(trace_of_recording(&trace, model), 0);
	assert_int_equal(trace_view_init(&view, trace, 0, &(struct trace_view_options){0}), 0);
	assert_int_equal(trace_ops_init(&ops, &view), 0);
	assert_int_equal(view.works.count, 8);
	check_op(trace, &ops, "aten::mm", 2, 100);
	check_op(trace, &ops, "aten::add", 2, 60);
	array_foreach (&trace->events, event) {
		const char *name = trace_text(trace, event->name);

		assert_int_equal(event->is_capture,
			only_replays && !trace_is_work(event) && !is_of_replay(name));
		hidden += event->is_capture;
	}
	assert_int_equal(hidden, only_replays ? 5 : 0);
	assert_int_equal(hidden, trace->capture_rows);
}

static void check_reasons(const struct model *model)
{
	size_t counts[MODEL_CAPTURE_MAX] = {0};

	array_foreach (&model->device_works, work)
		counts[work->capture]++;
	assert_int_equal(counts[MODEL_CAPTURE_KNOWN], 4);
	assert_int_equal(counts[MODEL_CAPTURE_UNSEEN], 2);
	assert_int_equal(counts[MODEL_CAPTURE_NO_CALL], 2);
	assert_int_equal(counts[MODEL_CAPTURE_NONE], 0);
}

static void test_operators_of_replays(void **state)
{
	struct example example;
	struct model *model;

	begin(&example);
	model = end_windows(&example, NULL);
	check_reasons(model);
	check_rows(model, false);
	assert_int_equal(model->launches.launches, 2);
	assert_int_equal(model->launches.without_work[WIRE_DEVICE_CAPTURED], 2);
	model_free(model);
}

/* What was captured in a window that is not asked for. */
static void test_windows(void **state)
{
	struct example example;
	struct model *model;

	begin(&example);
	model = end_windows(&example, "2");
	check_reasons(model);
	check_rows(model, true);
	assert_int_equal(model->ranges.count, 1);
	assert_int_equal(model->launches.launches, 2);
	assert_int_equal(model->launches.without_work[WIRE_DEVICE_CAPTURED], 0);
	model_free(model);
	/* Nothing is left of a capture alone. */
	begin(&example);
	model = end_windows(&example, "1");
	assert_int_equal(model->device_works.count, 0);
	assert_int_equal(model->captured_calls.count + model->capture_ranges.count, 0);
	assert_int_equal(model->launches.without_work[WIRE_DEVICE_CAPTURED], 2);
	model_free(model);
}

static void narrow(struct model *model, const struct selection *selection)
{
	struct errmsg err = {{0}};

	assert_int_equal(selection_narrow(selection, model, &err), 0);
}

/* Filters go by the replay, and keep what it was captured by. */
static void test_filters(void **state)
{
	const struct selection by_range = {.range = "^serve$"};
	const struct selection by_capture = {.range = "^capture$"};
	struct example example;
	struct model *model;

	begin(&example);
	model = end_windows(&example, NULL);
	narrow(model, &by_range);
	check_rows(model, true);
	model_free(model);
	begin(&example);
	model = end_windows(&example, NULL);
	narrow(model, &by_capture);
	assert_int_equal(model->device_works.count, 0);
	assert_int_equal(model->ranges.count, 3);
	model_free(model);
}

/* The ranges of sonde.watch(), which are found by their place among the rows. */
static void test_modules(void **state)
{
	static const char *const windows[] = {NULL, "2"};

	for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
		_cleanup_trace_ struct trace *trace = NULL;
		_cleanup_trace_view_ struct trace_view view = {0};
		_cleanup_modules_ struct modules modules = {0};
		struct example example;
		struct model *model;

		begin(&example);
		add_range(&example, "mlp", TID, 1150, 1350);
		model = end_windows(&example, windows[i]);
		assert_int_equal(trace_of_recording(&trace, model), 0);
		assert_int_equal(
			trace_view_init(&view, trace, 0, &(struct trace_view_options){0}), 0);
		assert_int_equal(modules_init(&modules, &view, 1), 0);
		assert_true(modules.has_modules);
		assert_string_equal(modules.rows.items[1].name, "mlp");
		assert_int_equal(module_device_ns(&modules.rows.items[1].total), 100);
		assert_int_equal(modules.rows.items[1].self.works[MODULE_FORWARD], 2);
		/* What no module's range was around when it was captured. */
		assert_string_equal(modules.rows.items[0].name, "serve");
		assert_int_equal(module_device_ns(&modules.rows.items[0].total), 120);
		model_free(model);
	}
}

/* A range that does not end, and one that ends within the call. */
static void test_ranges_that_do_not_enclose(void **state)
{
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, PID, "serve", 0);
	add_range(&example, "aten::open", TID, 1000, 0);
	add_range(&example, "aten::short", TID, 1200, 1215);
	add_range(&example, "aten::late", TID, 1300, 1400);
	add_launch(&example, 1210, TID, 11, WIRE_DEVICE_CAPTURED);
	add_launch(&example, 5000, PID, 21, WIRE_DEVICE_TIMED);
	add_node(&example, 5100, 50, 21, 11);
	model = example_end(&example);
	assert_int_equal(model->capture_ranges.count, 1);
	assert_string_equal(model->capture_ranges.items[0].name, "aten::open");
	assert_int_equal(model->ranges.count, 3);
	model_free(model);
}

/* ---- names of ranges ---- */

static void check_operator(const char *range, const char *name, const char *sizes)
{
	struct nvtx_operator operator;

	assert_true(nvtx_operator_read(range, &operator));
	assert_int_equal(operator.name_bytes, strlen(name));
	assert_memory_equal(range, name, strlen(name));
	assert_int_equal(operator.sizes_bytes, strlen(sizes));
	assert_int_equal(operator.sizes != NULL, *sizes != 0);
	if (*sizes)
		assert_memory_equal(operator.sizes, sizes, strlen(sizes));
}

static void test_names_of_operators(void **state)
{
	struct nvtx_operator operator;

	check_operator("aten::mm", "aten::mm", "");
	check_operator("aten::mm, op_id = 7", "aten::mm", "");
	check_operator("aten::mm, seq = 5, op_id = 7, sizes = [[64, 32], [], [1]], input_op_ids = "
		       "[(4,0)]",
		"aten::mm", "[[64, 32], [], [1]]");
	check_operator("aten::mm, sizes = []", "aten::mm", "[]");
	/* Foreign text is no JSON. */
	check_operator("aten::mm, sizes = [[64", "aten::mm", "");
	check_operator("aten::mm, sizes = 64", "aten::mm", "");
	check_operator("aten::mm, sizes = [1 2]", "aten::mm", "");
	check_operator("aten::mm, sizes = [1, ]", "aten::mm", "");
	check_operator("aten::mm, sizes = [, 1]", "aten::mm", "");
	check_operator("aten::mm, sizes = [[1][2]]", "aten::mm", "");
	check_operator("aten::mm, sizes = [01]", "aten::mm", "");
	check_operator("aten::mm, sizes = [[[[1]]]]", "aten::mm", "");
	check_operator(
		"aten::cat, sizes = [[[2, 0], [10 ]], []]", "aten::cat", "[[[2, 0], [10 ]], []]");
	check_operator("aten::mm, sizes = [\"a\"]", "aten::mm", "");
	check_operator("aten::mm, sizes = ", "aten::mm", "");
	assert_false(nvtx_operator_read("forward", &operator));
	assert_false(nvtx_operator_read("my aten::mm", &operator));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operators_of_replays),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_ranges_that_do_not_enclose),
		cmocka_unit_test(test_names_of_operators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
