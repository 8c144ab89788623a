/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of ranks compared, sequences of kernels, and memory over time. */
#include "trace-example.h"

#include "analyses/memory/memory.h"
#include "analyses/program/ranks.h"
#include "analyses/program/sequences.h"
#include "compat/hta/hta.h"

static void view(struct trace_view *view, struct trace *trace, uint32_t rank, bool hta)
{
	const struct trace_definitions *definitions = hta ? &hta_definitions : &own_definitions;

	example_trace_finish(trace);
	assert_int_equal(definitions->view(view, trace, rank,
				 &(struct trace_view_options){.keep_last_step = true}),
		0);
}

/* ---- stragglers ---- */

/* Two steps with an all-reduce each, which ends at the same time on all ranks. */
static struct trace *rank_that_begins_at(int64_t first_ns, int64_t second_ns)
{
	struct trace *trace = example_trace_new();

	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#1", EXAMPLE_PID, 0, 100000, 0);
	example_host(
		trace, TRACE_USER_ANNOTATION, "ProfilerStep#2", EXAMPLE_PID, 100000, 100000, 0);
	/* Too short, and on another stream. */
	example_launch(trace, "ncclKernel_Barrier", 9, 500, 100, first_ns / 2, 10, 9);
	example_launch(trace, "ncclKernel_AllReduce", 8, 1000, 100, first_ns, 90000 - first_ns, 1);
	example_launch(trace, "ncclKernel_AllReduce", 8, 101000, 100, 100000 + second_ns,
		90000 - second_ns, 2);
	/* Launched in no step. */
	example_launch(trace, "ncclKernel_AllReduce", 8, 300000, 100, 300000, 90000, 3);
	return trace;
}

static void ranks_that_begin_last_are_stragglers_of_hta(void **state)
{
	_cleanup_trace_ struct trace *first = rank_that_begins_at(10000, 20000);
	_cleanup_trace_ struct trace *second = rank_that_begins_at(50000, 60000);
	_cleanup_trace_ struct trace *third = rank_that_begins_at(11000, 21000);
	struct trace_view views[3] = {0};
	const struct rank_input input = {
		.views = views, .view_count = 3, .definition = hta_definitions.ranks};
	_cleanup_ranks_ struct ranks ranks = {0};

	view(&views[0], first, 0, false);
	view(&views[1], second, 4, false);
	view(&views[2], third, 5, false);
	assert_int_equal(ranks_init(&ranks, &input), 0);
	assert_string_equal(ranks.collective, "ncclKernel_AllReduce");
	assert_int_equal(ranks.stream, 8);
	assert_int_equal(ranks.steps, 2);
	assert_int_equal(ranks.lateness.count, 3);
	assert_int_equal(ranks.lateness.items[0].rank, 4);
	assert_int_equal(ranks.lateness.items[0].late_steps, 2);
	assert_int_equal(ranks.lateness.items[0].lateness_ns, 40000);
	assert_int_equal(ranks.lateness.items[0].duration_ns, 35000);
	/* The last two of each step are late. */
	assert_int_equal(ranks.lateness.items[1].rank, 5);
	assert_int_equal(ranks.lateness.items[1].late_steps, 2);
	assert_int_equal(ranks.lateness.items[2].lateness_ns, 0);
	assert_int_equal(ranks.collectives.matched, 0);
	for (int i = 0; i < 3; i++)
		trace_view_done(&views[i]);
}

static void one_rank_waits_for_nobody(void **state)
{
	_cleanup_trace_ struct trace *trace = rank_that_begins_at(10000, 20000);
	_cleanup_trace_view_ struct trace_view one = {0};
	_cleanup_ranks_ struct ranks ranks = {0};

	view(&one, trace, 0, false);
	assert_int_equal(
		ranks_init(&ranks, &(struct rank_input){.views = &one, .view_count = 1}), 0);
	assert_int_equal(ranks.lateness.count + ranks.collectives.matched, 0);
	assert_string_equal(ranks.collective, "");
}

/* ---- sequences ---- */

static void add_layer(struct trace *trace, int64_t start_ns, uint64_t correlation, bool swapped)
{
	example_host(trace, TRACE_CPU_OP, "aten::linear", EXAMPLE_PID, start_ns, 900, 0);
	example_host(trace, TRACE_CPU_OP, "aten::addmm", EXAMPLE_PID, start_ns + 10, 800, 0);
	example_launch(trace, "copy", 7, start_ns + 20, 10, start_ns + 5000, 100, correlation);
	example_launch(trace, swapped ? "bias" : "gemm", 7, start_ns + 40, 10, start_ns + 5200, 200,
		correlation + 1);
	example_launch(trace, swapped ? "gemm" : "bias", 7, start_ns + 60, 10, start_ns + 5500, 50,
		correlation + 2);
}

static void sequences_are_counted(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view one = {0};
	_cleanup_trace_sequences_ struct trace_sequences all = {0}, named = {0}, longer = {0};
	const struct trace_sequence *sequence;

	add_layer(trace, 0, 1, false);
	add_layer(trace, 1000, 4, true);
	add_layer(trace, 2000, 7, false);
	example_host(trace, TRACE_CPU_OP, "aten::relu", EXAMPLE_PID, 3000, 100, 0);
	example_launch(trace, "relu", 7, 3010, 10, 9000, 10, 10);
	view(&one, trace, 0, false);
	assert_int_equal(trace_sequences_init(&all, &one, &(struct trace_sequence_options){0}), 0);
	assert_int_equal(all.items.count, 2);
	assert_int_equal(all.operators, 3);
	sequence = &all.items.items[0];
	assert_string_equal(trace_text(trace, sequence->op), "aten::linear");
	assert_int_equal(sequence->count, 2);
	assert_int_equal(sequence->kernel_count, 3);
	assert_string_equal(trace_text(trace, sequence->kernels[0]), "copy");
	assert_string_equal(trace_text(trace, sequence->kernels[1]), "gemm");
	assert_string_equal(trace_text(trace, sequence->kernels[2]), "bias");
	assert_int_equal(sequence->op_ns, 1800);
	assert_int_equal(sequence->kernel_ns, 700);
	assert_int_equal(
		trace_sequences_init(&named, &one, &(struct trace_sequence_options){.op = "addmm"}),
		0);
	assert_int_equal(named.items.items[0].op_ns, 1600);
	assert_int_equal(trace_sequences_init(
				 &longer, &one, &(struct trace_sequence_options){.shortest = 4}),
		0);
	assert_int_equal(longer.items.count, 0);
}

/* ---- memory ---- */

static void add_memory(struct trace *trace, int64_t time_ns, uint64_t address, int64_t bytes,
	int64_t total, int64_t type)
{
	struct trace_memory memory = {
		.address = address,
		.bytes = bytes,
		.total_allocated = total,
		.total_reserved = 2048,
		.device_type = type,
		.device_id = type ? 0 : -1,
	};
	uint32_t row = example_host(
		trace, TRACE_CPU_INSTANT, "[memory]", EXAMPLE_PID, time_ns, TRACE_NO_DURATION, 0);

	trace->events.items[row].detail = (uint32_t)trace->memory.count;
	assert_int_equal(array_append(&trace->memory, memory), 0);
}

static void memory_has_a_peak_and_owners(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_memory_ struct trace_memory_use use = {0};
	const struct trace_memory_device *device;
	char name[64];

	example_host(trace, TRACE_CPU_OP, "aten::empty", EXAMPLE_PID, 10, 20, 0);
	example_host(trace, TRACE_RUNTIME, "cudaMalloc", EXAMPLE_PID, 12, 10, 0);
	add_memory(trace, 15, 0x1000, 512, 512, 1);
	add_memory(trace, 25, 0x2000, 256, 768, 1);
	add_memory(trace, 26, 0x9000, 64, 64, 0);
	add_memory(trace, 40, 0x1000, -512, 256, 1);
	add_memory(trace, 50, 0x3000, 128, 384, 1);
	example_trace_finish(trace);
	assert_int_equal(trace_memory_init(&use, trace), 0);
	assert_int_equal(use.devices.count, 2);
	trace_memory_device_name(&use.devices.items[0], name, sizeof(name));
	assert_string_equal(name, "CPU");
	device = &use.devices.items[1];
	trace_memory_device_name(device, name, sizeof(name));
	assert_string_equal(name, "GPU 0");
	assert_int_equal(device->peak, 768);
	assert_int_equal(device->peak_ns, 25);
	assert_int_equal(device->peak_reserved, 2048);
	assert_int_equal(device->allocations, 3);
	assert_int_equal(device->allocated_bytes, 896);
	assert_int_equal(device->releases, 1);
	assert_int_equal(device->released_bytes, 512);
	assert_int_equal(device->unreleased, 2);
	assert_int_equal(device->unreleased_bytes, 384);
	assert_int_equal(device->points.count, 4);
	assert_int_equal(device->ops.count, 2);
	assert_string_equal(trace_text(trace, device->ops.items[0].name), "aten::empty");
	assert_int_equal(device->ops.items[0].bytes, 768);
	assert_int_equal(device->ops.items[0].kept, 768);
	assert_int_equal(device->ops.items[1].name, 0);
	assert_int_equal(device->ops.items[1].kept, 128 - 512);
}

/* Two processes with one address; and a release of what nobody saw. */
static void memory_in_use_is_what_was_seen(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_memory_ struct trace_memory_use use = {0};
	const struct trace_memory_device *device;

	add_memory(trace, 10, 0x1000, 512, TRACE_NO_NUMBER, 1);
	add_memory(trace, 20, 0x1000, 256, TRACE_NO_NUMBER, 1);
	trace->events.items[1].track = example_track(trace, EXAMPLE_PID + 1, 1, false);
	add_memory(trace, 30, 0x2000, -4096, TRACE_NO_NUMBER, 1);
	add_memory(trace, 40, 0x1000, -512, TRACE_NO_NUMBER, 1);
	add_memory(trace, 50, 0x3000, TRACE_NO_NUMBER, TRACE_NO_NUMBER, 1);
	example_trace_finish(trace);
	assert_int_equal(trace_memory_init(&use, trace), 0);
	assert_int_equal(use.devices.count, 1);
	device = &use.devices.items[0];
	assert_int_equal(device->peak, 768);
	assert_int_equal(device->peak_ns, 20);
	assert_int_equal(device->points.count, 4);
	assert_int_equal(device->points.items[3].allocated, 256);
	assert_int_equal(device->unreleased, 1);
	assert_int_equal(device->unreleased_bytes, 256);
	assert_int_equal(device->released_bytes, 4096 + 512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_that_begin_last_are_stragglers_of_hta),
		cmocka_unit_test(one_rank_waits_for_nobody),
		cmocka_unit_test(sequences_are_counted),
		cmocka_unit_test(memory_has_a_peak_and_owners),
		cmocka_unit_test(memory_in_use_is_what_was_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
