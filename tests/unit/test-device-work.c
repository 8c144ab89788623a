/* SPDX-License-Identifier: Apache-2.0 */
/* Device work in the model: joined to its stacks, summed up, and as weight of stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/call_tree.h"
#include "analyses/device/device_work.h"
#include "analyses/device/kernels.h"
#include "model/builder/builder.h"
#include "model/trace_capture.h"
#include "model/weigh.h"

#define PID 100
#define TID 101

static void add_stack(struct model_builder *builder)
{
	const struct capture_visitor *visitor = &model_builder_visitor;
	const struct capture_mapping mapping = {.path = "/home/me/program"};
	const struct capture_frame frames[] = {
		{.function = "main", .mapping = 1, .rel_pc = 1, .kind = CAPTURE_FRAME_NATIVE},
		{.function = "launch",
			.mapping = 1,
			.rel_pc = 2,
			.kind = CAPTURE_FRAME_NATIVE,
			.source_file = "/home/me/program.c",
			.line = 12},
	};
	const capture_id ids[] = {1, 2};

	assert_int_equal(visitor->mapping(builder, 1, &mapping), 0);
	assert_int_equal(visitor->frame(builder, 1, &frames[0]), 0);
	assert_int_equal(visitor->frame(builder, 2, &frames[1]), 0);
	assert_int_equal(
		visitor->callstack(builder, 1, ids, 2, WIRE_STOP_COMPLETE, WIRE_PYTHON_NONE), 0);
}

static void add_work(struct model_builder *builder, uint64_t correlation, uint64_t start_ns,
	uint64_t end_ns, const char *name)
{
	const struct capture_device_work work = {
		.start_ns = start_ns,
		.end_ns = end_ns,
		.launch_ns = start_ns - 10,
		.pid = PID,
		.tid = TID,
		.correlation = correlation,
		.kind = WIRE_DEVICE_KERNEL,
		.name = name,
		.device = "a device",
	};

	assert_int_equal(model_builder_visitor.device_work(builder, &work), 0);
}

static void add_launch_stack(struct model_builder *builder, uint32_t pid, uint64_t correlation)
{
	const struct capture_launch_stack stack = {
		.time_ns = 1, .pid = pid, .tid = TID, .correlation = correlation, .callstack = 1};

	assert_int_equal(model_builder_visitor.launch_stack(builder, &stack), 0);
}

/* Stacks before and after their work, one of another process, one without work, a failed launch. */
static struct model *example(void)
{
	const struct capture_session session = {.sonde_version = "",
		.host = "",
		.kernel_release = "",
		.architecture = "",
		.unwind_mode = "bpf",
		.launch_stacks = "bpf",
		.period_ns = 1000000};
	const struct capture_launch failed = {.pid = PID,
		.tid = TID,
		.correlation = 9,
		.kind = WIRE_DEVICE_READ,
		.untimed = WIRE_DEVICE_FAILED};
	const struct capture_launch wait = {
		.duration_ns = 70, .pid = PID, .tid = TID, .kind = WIRE_DEVICE_FINISH};
	struct model_builder *builder;
	struct model *model;

	assert_int_equal(model_builder_new(&builder), 0);
	assert_int_equal(model_builder_visitor.session(builder, &session), 0);
	add_stack(builder);
	add_launch_stack(builder, PID, 1);
	add_work(builder, 1, 1000, 3000, "scale");
	add_work(builder, 2, 2000, 4000, "scale"); /* overlaps the first */
	add_launch_stack(builder, PID, 2);
	add_work(builder, 3, 10000, 10500, "add");
	add_launch_stack(builder, PID + 1, 3); /* another process's third launch */
	add_launch_stack(builder, PID, 8);     /* whose work never ended */
	assert_int_equal(model_builder_visitor.launch(builder, &failed), 0);
	assert_int_equal(model_builder_visitor.launch(builder, &wait), 0);
	assert_int_equal(model_builder_finish(builder, NULL, &model), 0);
	model_builder_free(builder);
	return model;
}

static void test_joins(void **state)
{
	_cleanup_model_ struct model *model = example();
	_cleanup_device_work_ struct device_work work = {0};

	assert_int_equal(device_work_init(&work, model), 0);
	assert_int_equal(work.count, 3);
	assert_int_equal(work.total_ns, 4500);
	assert_int_equal(work.by_attribution[MODEL_ATTRIBUTED], 2);
	assert_int_equal(work.by_attribution[MODEL_NO_STACK], 1);
	assert_int_equal(model->launches.launches, 6);
	assert_int_equal(model->launches.stacks, 4);
	assert_int_equal(model->launches.complete_stacks, 4);
	assert_int_equal(model->launches.without_work[WIRE_DEVICE_FAILED], 1);
	assert_int_equal(model->launches.without_work[WIRE_DEVICE_TIMED], 2);
	assert_int_equal(model->launches.wait_count, 1);
	assert_int_equal(model->launches.wait_ns, 70);
}

static void add_same(
	struct model_builder *builder, uint64_t correlation, uint64_t same_as, bool is_check)
{
	const struct capture_launch_stack stack = {.time_ns = 1,
		.pid = PID,
		.correlation = correlation,
		.same_as = same_as,
		.is_check = is_check};

	assert_int_equal(model_builder_visitor.launch_stack(builder, &stack), 0);
}

/* Whichever comes first; what is known of a stack that was lost is nothing. */
static void test_stacks_of_earlier_launches(void **state)
{
	const capture_id ids[] = {1};
	_cleanup_model_ struct model *model = NULL;
	struct model_builder *builder;

	assert_int_equal(model_builder_new(&builder), 0);
	add_stack(builder);
	assert_int_equal(model_builder_visitor.callstack(
				 builder, 2, ids, 1, WIRE_STOP_COMPLETE, WIRE_PYTHON_NONE),
		0);
	for (uint64_t i = 1; i <= 6; i++)
		add_work(builder, i, 1000 * i, 1000 * i + 100, "scale");
	add_same(builder, 2, 1, false);
	add_launch_stack(builder, PID, 1);
	add_same(builder, 3, 99, false); /* lost */
	add_launch_stack(builder, PID, 4);
	add_same(builder, 4, 1, true);
	add_same(builder, 5, 1, true);
	assert_int_equal(model_builder_visitor.launch_stack(builder,
				 &(struct capture_launch_stack){
					 .pid = PID, .tid = TID, .correlation = 5, .callstack = 2}),
		0);
	add_same(builder, 6, 98, true);
	assert_int_equal(model_builder_finish(builder, NULL, &model), 0);
	model_builder_free(builder);
	assert_int_equal(model->launches.stacks, 4);
	assert_int_equal(model->launches.known_stacks, 1);
	assert_int_equal(model->launches.checked_stacks, 2);
	assert_int_equal(model->launches.wrong_stacks, 1);
	assert_int_equal(model->device_works.items[1].stack, model->device_works.items[0].stack);
	assert_int_equal(model->device_works.items[1].unattributed, MODEL_ATTRIBUTED);
	assert_int_equal(model->device_works.items[1].thread, model->device_works.items[0].thread);
	assert_int_equal(model->device_works.items[2].unattributed, MODEL_NO_STACK);
}

static void test_sums(void **state)
{
	_cleanup_model_ struct model *model = example();
	_cleanup_device_work_ struct device_work work = {0};

	assert_int_equal(device_work_init(&work, model), 0);
	assert_int_equal(work.devices.count, 1);
	assert_int_equal(work.devices.items[0].busy_ns, 3500);
	assert_int_equal(work.devices.items[0].work_ns, 4500);
	assert_int_equal(work.lines.count, 2);
	assert_int_equal(work.lines.items[0].total_ns, 4000);
	assert_int_equal(model->frames.items[work.lines.items[0].frame].line, 12);
	assert_int_equal(work.lines.items[1].frame, MODEL_NONE);
	assert_int_equal(work.lines.items[1].unattributed, MODEL_NO_STACK);
}

static void test_kernels(void **state)
{
	_cleanup_model_ struct model *model = example();
	_cleanup_trace_ struct trace *trace = NULL;
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_kernels_ struct kernels kernels = {0};

	assert_int_equal(trace_of_recording(&trace, model), 0);
	assert_int_equal(trace_view_init(&view, trace, 0, &(struct trace_view_options){0}), 0);
	assert_int_equal(kernels_init(&kernels, &view, 1), 0);
	assert_int_equal(kernels.rows.count, 2);
	assert_string_equal(kernels.rows.items[0].name, "scale");
	assert_int_equal(kernels.rows.items[0].count, 2);
	assert_int_equal(kernels.rows.items[0].total_ns, 4000);
	assert_int_equal(kernels.rows.items[1].least_ns, 500);
	assert_null(kernels.rows.items[0].configuration); /* of no CUDA */
}

/* The tree's weight is the device's time; work without a stack stands below its reason. */
static void test_weight(void **state)
{
	const struct selection selection = {.weight = MODEL_WEIGHT_GPU};
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_call_tree_ struct call_tree tree = {0};
	_cleanup_model_ struct model *model = example();
	bool unattributed = false, kernel = false;
	struct errmsg err;

	assert_int_equal(model_weigh(model, MODEL_WEIGHT_GPU), 0);
	assert_int_equal(model_sample_weight_ns(model), MODEL_UNIT_NS);
	assert_int_equal(selection_apply(&selection, model, &selected, &err), 0);
	assert_int_equal(call_tree_init(&tree), 0);
	assert_int_equal(call_tree_add(&tree, 0, model, &selected, CALL_TREE_ROOTS_NONE), 0);
	assert_int_equal(call_tree_finish(&tree), 0);
	assert_int_equal(tree.nodes.items[0].total[0], 4500);
	array_foreach (&tree.labels, label) {
		unattributed |= strcmp(label->name, "[unattributed: no launch stack]") == 0;
		kernel |= strcmp(label->name, "[gpu] scale") == 0;
	}
	assert_true(unattributed && kernel);
}

/* A graph, timed as a whole; `launcher` 0: the host launched it, by the call of `correlation`. */
struct graph_launch {
	uint64_t start_ns, correlation;
	uint32_t pid, gpu, graph, launcher;
	uint64_t charged_to; /* expected: the correlation; 0: none */
};

/* Each is charged to the last launch of its launcher that began before it, of its process and GPU.
 */
static void test_graphs_launched_by_the_device(void **state)
{
	static const struct graph_launch launches[] = {
		/* In no order, as they come. */
		{130, 0, PID, 1, 21, 20, 1},
		{100, 1, PID, 1, 20, 0, 1},
		{200, 2, PID, 1, 20, 0, 2},
		{230, 0, PID, 1, 21, 20, 2},
		{240, 0, PID, 1, 22, 21, 2}, /* by one that the device launched, too */
		{250, 0, PID, 1, 22, 22, 2}, /* by itself */
		{260, 0, PID, 1, 21, 99, 0}, /* by one that is not known */
		{270, 0, PID, 1, 23, 21, 0}, /* by that one's */
		{100, 0, PID, 1, 21, 20, 1}, /* at the same moment */
		{210, 0, PID, 2, 21, 20, 0}, /* on another GPU */
		{210, 5, PID + 1, 1, 20, 0, 5},
		{215, 0, PID + 1, 1, 24, 20, 5},
		{220, 0, PID + 1, 1, 24, WIRE_LAUNCHER_UNKNOWN, 0},
	};
	const size_t count = sizeof(launches) / sizeof(*launches);
	const struct capture_session session = {.sonde_version = "",
		.host = "",
		.kernel_release = "",
		.architecture = "",
		.unwind_mode = "bpf",
		.launch_stacks = "bpf",
		.period_ns = 1000000};
	_cleanup_model_ struct model *model = NULL;
	struct model_builder *builder;

	assert_int_equal(model_builder_new(&builder), 0);
	assert_int_equal(model_builder_visitor.session(builder, &session), 0);
	add_stack(builder);
	add_launch_stack(builder, PID, 1);
	add_launch_stack(builder, PID, 2);
	for (size_t i = 0; i < count; i++) {
		const struct capture_device_work work = {
			.start_ns = launches[i].start_ns,
			.end_ns = launches[i].start_ns + 7,
			.pid = launches[i].pid,
			.gpu = launches[i].gpu,
			.correlation = launches[i].correlation,
			.kind = WIRE_DEVICE_GRAPH,
			.name = "",
			.device = "a device",
			.queue = (uint32_t)i, /* by which it is found again */
			.graph = launches[i].graph,
			.launcher = launches[i].launcher,
		};

		assert_int_equal(model_builder_visitor.device_work(builder, &work), 0);
	}
	assert_int_equal(model_builder_finish(builder, NULL, &model), 0);
	model_builder_free(builder);
	assert_int_equal(model->device_works.count, count);
	assert_int_equal(model->launches.launches, 3);
	array_foreach (&model->device_works, work) {
		const struct graph_launch *expected = &launches[work->queue];

		assert_int_equal(work->correlation, expected->charged_to);
		if (!expected->charged_to)
			assert_int_equal(work->unattributed, MODEL_LAUNCHED_ON_DEVICE);
		else
			assert_int_equal(work->unattributed,
				expected->charged_to == 5 ? MODEL_NO_STACK : MODEL_ATTRIBUTED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_joins),
		cmocka_unit_test(test_graphs_launched_by_the_device),
		cmocka_unit_test(test_stacks_of_earlier_launches),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_weight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
