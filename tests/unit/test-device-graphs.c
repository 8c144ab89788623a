/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA graphs and occupancy: what the model and the analyses make of a capture's device events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "analyses/device/device_work.h"
#include "analyses/device/graphs.h"
#include "analyses/device/kernels.h"
#include "analyses/device/occupancy.h"
#include "model/builder/builder.h"
#include "model/trace_capture.h"

#define PID 100
#define TID 101

static const struct capture_visitor *const build = &model_builder_visitor;

/* Callstack `id` is the function of that number of a table. */
static void add_stack(struct model_builder *builder, capture_id id, const char *function)
{
	const struct capture_frame frame = {
		.function = function, .mapping = 1, .rel_pc = id, .kind = CAPTURE_FRAME_NATIVE};

	assert_int_equal(build->frame(builder, id, &frame), 0);
	assert_int_equal(
		build->callstack(builder, id, &id, 1, WIRE_STOP_COMPLETE, WIRE_PYTHON_NONE), 0);
}

static void add_call(struct model_builder *builder, uint64_t correlation, capture_id stack)
{
	const struct capture_launch_stack out = {.time_ns = 1,
		.pid = PID,
		.tid = TID,
		.correlation = correlation,
		.callstack = stack};

	assert_int_equal(build->launch_stack(builder, &out), 0);
}

static void add_launch(struct model_builder *builder, uint64_t correlation,
	enum wire_device_kind kind, enum wire_device_untimed untimed)
{
	const struct capture_launch launch = {.time_ns = 900,
		.duration_ns = 50,
		.pid = PID,
		.tid = TID,
		.correlation = correlation,
		.kind = kind,
		.untimed = untimed};

	assert_int_equal(build->launch(builder, &launch), 0);
}

static void add_graph_call(
	struct model_builder *builder, uint64_t time_ns, const struct capture_graph_call *call)
{
	const struct capture_device_event event = {
		.kind = CAPTURE_GRAPH_CALL, .pid = PID, .time_ns = time_ns, .graph = *call};

	assert_int_equal(build->device_event(builder, &event), 0);
}

static void add_node(
	struct model_builder *builder, uint64_t correlation, uint32_t node, uint64_t start_ns)
{
	const struct capture_device_work work = {
		.start_ns = start_ns,
		.end_ns = start_ns + 100,
		.pid = PID,
		.correlation = correlation,
		.kind = WIRE_DEVICE_KERNEL,
		.name = node ? "second" : "first",
		.device = "CUDA device 0",
		.gpu = 1,
		.registers = 64,
		.local_size = {256, 1, 1},
		.graph = 20,
		.graph_node = 20ULL << 32 | node,
		.capture = 11 + node,
	};

	assert_int_equal(build->device_work(builder, &work), 0);
}

/* `memory`: CUpti_ActivityMemoryKind; 3 is a device's, 2 pinned memory of the host. */
static void add_allocation(struct model_builder *builder, uint64_t time_ns, uint32_t pid,
	uint32_t memory, uint64_t bytes)
{
	const struct capture_device_event event = {.kind = CAPTURE_MEMORY,
		.pid = pid,
		.time_ns = time_ns,
		.memory = {.address = time_ns, .bytes = bytes, .gpu = 1, .memory = memory}};

	assert_int_equal(build->device_event(builder, &event), 0);
}

static const struct capture_gpu gpu = {
	.number = 1,
	.capability_major = 9,
	.uuid_high = 0xabcdef0102030405,
	.multiprocessors = 132,
	.warp_threads = 32,
	.multiprocessor_warps = 64,
	.multiprocessor_blocks = 32,
	.multiprocessor_shared_bytes = 233472,
	.multiprocessor_registers = 65536,
	.block_registers = 65536,
};

/* Captured by calls 10 to 14, instantiated by 15, replayed by 16 and 17. */
static struct model *example(void)
{
	const struct capture_mapping mapping = {.path = "/home/me/program"};
	const struct capture_device_event device = {
		.kind = CAPTURE_GPU, .pid = PID, .text = "A GPU", .gpu = gpu};
	static const char *const functions[] = {
		"begin", "layer_first", "layer_second", "end", "make", "replay"};
	struct model_builder *builder;
	struct model *model;

	assert_int_equal(model_builder_new(&builder), 0);
	assert_int_equal(build->mapping(builder, 1, &mapping), 0);
	for (capture_id i = 0; i < 6; i++)
		add_stack(builder, i + 1, functions[i]);
	for (uint64_t i = 0; i < 5; i++)
		add_call(builder, i < 4 ? 10 + i : 15, (capture_id)i + 1);
	add_call(builder, 16, 6);
	add_call(builder, 17, 6);
	add_node(builder, 16, 1, 1000); /* work before what tells of it */
	add_launch(builder, 11, WIRE_DEVICE_KERNEL, WIRE_DEVICE_CAPTURED);
	add_launch(builder, 12, WIRE_DEVICE_KERNEL, WIRE_DEVICE_CAPTURED);
	add_launch(builder, 16, WIRE_DEVICE_GRAPH, WIRE_DEVICE_TIMED);
	add_launch(builder, 17, WIRE_DEVICE_GRAPH, WIRE_DEVICE_TIMED);
	add_graph_call(builder, 100,
		&(struct capture_graph_call){
			.event = WIRE_GRAPH_CAPTURE_BEGIN, .tid = TID, .correlation = 10});
	add_graph_call(builder, 300,
		&(struct capture_graph_call){.event = WIRE_GRAPH_CAPTURE_END,
			.tid = TID,
			.correlation = 13,
			.duration_ns = 20,
			.graph = 10,
			.nodes = 2});
	add_graph_call(builder, 400,
		&(struct capture_graph_call){.event = WIRE_GRAPH_INSTANTIATE,
			.tid = TID,
			.correlation = 15,
			.duration_ns = 30,
			.graph = 10,
			.other = 20});
	assert_int_equal(build->device_event(builder, &device), 0);
	/* Before, in, and after the capture, of which the third is the host's and the fourth
	 * another process's. */
	add_allocation(builder, 99, PID, 3, 1);
	add_allocation(builder, 150, PID, 3, 4096);
	add_allocation(builder, 160, PID, 2, 2);
	add_allocation(builder, 170, PID + 1, 3, 8);
	add_allocation(builder, 320, PID, 3, 16);
	add_node(builder, 16, 0, 2000);
	add_node(builder, 17, 0, 3000);
	add_node(builder, 17, 1, 3500);
	assert_int_equal(model_builder_finish(builder, NULL, &model), 0);
	model_builder_free(builder);
	return model;
}

static const char *function_of(const struct model *model, uint32_t frame)
{
	assert_true(frame != MODEL_NONE);
	return model_function_name(model, model->frames.items[frame].function);
}

static void test_model(void **state)
{
	_cleanup_model_ struct model *model = example();

	assert_int_equal(model->device_works.count, 4);
	array_foreach (&model->device_works, work) {
		uint32_t frame = model->stack_frames.items[model->stacks.items[work->stack].first];
		uint32_t launch =
			model->stack_frames.items[model->stacks.items[work->launch_stack].first];

		assert_true(work->replayed && work->capture_known);
		assert_string_equal(work->device, "A GPU (GPU-abcdef01)");
		assert_string_equal(function_of(model, frame),
			*work->name == 'f' ? "layer_first" : "layer_second");
		assert_string_equal(function_of(model, launch), "replay");
		assert_int_equal(work->launch_ns, 900);
		assert_int_equal(work->launch_duration_ns, 50);
		assert_int_equal(model->threads.items[work->thread].tid, TID);
	}
	/* Calls that make graphs give the device nothing to do. */
	assert_int_equal(model->launches.launches, 2);
	assert_int_equal(model->launches.without_work[WIRE_DEVICE_CAPTURED], 2);
	assert_int_equal(model->launches.without_work[WIRE_DEVICE_TIMED], 0);
	assert_string_equal(model->gpus.items[0].uuid, "GPU-abcdef01-0203-0405-0000-000000000000");
}

static void test_graphs(void **state)
{
	_cleanup_model_ struct model *model = example();
	_cleanup_device_graphs_ struct device_graphs graphs = {0};
	_cleanup_trace_ struct trace *trace = NULL;
	_cleanup_trace_view_ struct trace_view view = {0};
	const struct device_graph *graph;

	assert_int_equal(trace_of_recording(&trace, model), 0);
	assert_int_equal(trace_view_init(&view, trace, 0, &(struct trace_view_options){0}), 0);
	assert_int_equal(device_graphs_init(&graphs, model, &view, 1), 0);
	assert_int_equal(graphs.graphs.count, 1);
	assert_int_equal(graphs.captures, 1);
	graph = &graphs.graphs.items[0];
	assert_int_equal(graph->id, 20);
	assert_int_equal(graph->source, 10);
	assert_true(graph->has_capture && !graph->whole_replays);
	assert_int_equal(graph->capture_ns, 220);
	assert_int_equal(graph->captured_nodes, 2);
	assert_int_equal(graph->capture_bytes, 4096);
	assert_int_equal(graph->instantiate_ns, 30);
	assert_int_equal(graph->replays, 2);
	assert_int_equal(graph->work_ns, 400);
	assert_int_equal(graph->span_ns, 1100 + 600);
	assert_int_equal(graph->median_by_node_ns, (1100 + 600) / 2);
	assert_int_equal(graph->median_whole_ns, 0);
	assert_string_equal(function_of(model, graph->capture_frame), "begin");
	assert_string_equal(function_of(model, graph->replay_frame), "replay");
	assert_int_equal(graphs.nodes.count, 2);
	array_foreach (&graphs.nodes, node) {
		assert_int_equal(node->count, 2);
		assert_int_equal(node->total_ns, 200);
	}
	assert_string_equal(function_of(model, graphs.nodes.items[0].frame), "layer_first");
}

static void test_launch_calls_and_occupancy(void **state)
{
	_cleanup_model_ struct model *model = example();
	_cleanup_device_work_ struct device_work work = {0};
	_cleanup_trace_ struct trace *trace = NULL;
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_kernels_ struct kernels kernels = {0};
	struct occupancy occupancy;

	assert_int_equal(device_work_init(&work, model), 0);
	assert_int_equal(work.launch_calls, 2); /* not 4, though they launched 4 kernels */
	assert_int_equal(work.launch_call_ns, 100);
	assert_int_equal(work.by_attribution[MODEL_ATTRIBUTED], 4);
	assert_int_equal(trace_of_recording(&trace, model), 0);
	assert_int_equal(trace_view_init(&view, trace, 0, &(struct trace_view_options){0}), 0);
	assert_int_equal(kernels_init(&kernels, &view, 1), 0);
	array_foreach (&kernels.rows, kernel) {
		assert_non_null(kernel->configuration);
		assert_true(occupancy_of_work(trace, kernel->configuration, &occupancy));
		assert_int_equal(occupancy.blocks, 4);
		assert_int_equal(occupancy.limit, OCCUPANCY_REGISTERS);
	}
}

/* Worked out by hand from the rules that occupancy.h states. */
static void test_occupancy(void **state)
{
	static const struct {
		struct occupancy_launch launch;
		unsigned blocks;
		enum occupancy_limit limit;
	} cases[] = {
		{{.block_threads = 1024, .registers = 16}, 2, OCCUPANCY_WARPS},
		{{.block_threads = 32, .registers = 16}, 32, OCCUPANCY_BLOCKS},
		{{.block_threads = 256, .registers = 64}, 4, OCCUPANCY_REGISTERS},
		{{.block_threads = 256, .registers = 255}, 1, OCCUPANCY_REGISTERS},
		/* 233,472 / (100,000 + 1,024, rounded up to 128) */
		{{.block_threads = 128, .registers = 32, .shared_bytes = 100000}, 2,
			OCCUPANCY_SHARED},
	};
	const struct occupancy_launch too_large = {.block_threads = 128, .shared_bytes = 300000};
	struct capture_gpu unknown = gpu;
	struct occupancy occupancy;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_true(occupancy_of(&gpu, &cases[i].launch, &occupancy));
		assert_int_equal(occupancy.blocks, cases[i].blocks);
		assert_int_equal(occupancy.limit, cases[i].limit);
	}
	assert_false(occupancy_of(&gpu, &too_large, &occupancy));
	unknown.multiprocessor_registers = 0;
	assert_false(occupancy_of(&unknown, &cases[0].launch, &occupancy));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_graphs),
		cmocka_unit_test(test_launch_calls_and_occupancy),
		cmocka_unit_test(test_occupancy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
