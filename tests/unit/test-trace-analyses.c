/* SPDX-License-Identifier: Apache-2.0 */
/* The analyses of traces on cases computed by hand: graphs, overlapping kernels, several streams.
 */
#include <math.h>

#include "trace-example.h"

#include "analyses/device/calls.h"
#include "analyses/device/copies.h"
#include "analyses/device/queue.h"
#include "analyses/program/ops.h"
#include "analyses/program/summary.h"
#include "compat/hta/hta.h"

#define US 1000

static const struct trace_definitions *const ours = &own_definitions, *const hta = &hta_definitions;

static void view(
	struct trace_view *view, struct trace *trace, const struct trace_definitions *definitions)
{
	example_trace_finish(trace);
	assert_int_equal(definitions->view(view, trace, 0, &(struct trace_view_options){0}), 0);
}

/* ---- descriptions ---- */

static void values_are_described_as_by_pandas(void **state)
{
	const int64_t values[] = {40, 10, 30, 20};
	struct trace_describe describe;

	assert_int_equal(trace_describe_ns(&describe, values, 4), 0);
	assert_int_equal(describe.count, 4);
	assert_true(describe.mean == 25 && describe.least == 10 && describe.most == 40);
	assert_true(describe.quarter == 17.5 && describe.median == 25);
	assert_true(describe.three_quarters == 32.5);
	assert_true(fabs(describe.deviation - 12.909944487358056) < 1e-12);
	assert_int_equal(trace_describe_ns(&describe, values, 1), 0);
	assert_true(describe.median == 40 && isnan(describe.deviation));
	assert_int_equal(trace_describe_ns(&describe, values, 0), 0);
	assert_true(!describe.count && isnan(describe.mean) && isnan(describe.most));
}

/* ---- idle time ---- */

static const struct device_idle_place *place_of(
	const struct device_idle *idle, uint32_t device, uint32_t stream)
{
	array_foreach (&idle->places, place) {
		if (place->device == device && place->stream == stream)
			return place;
	}
	fail_msg("no such place");
	return NULL;
}

/* Stream 7 works at 0..100, 200..300, 310..400 and 500..600 us, stream 20 at 100..150 us. */
static struct trace *two_streams(void)
{
	struct trace *trace = example_trace_new();

	example_launch(trace, "a", 7, -20 * US, 5 * US, 0, 100 * US, 1);
	example_launch(trace, "b", 20, -10 * US, 5 * US, 100 * US, 50 * US, 2);
	example_launch(trace, "c", 7, 180 * US, 5 * US, 200 * US, 100 * US, 3);
	example_launch(trace, "d", 7, 250 * US, 5 * US, 310 * US, 90 * US, 4);
	example_launch(trace, "e", 7, 390 * US, 5 * US, 500 * US, 100 * US, 5);
	return trace;
}

static void idle_time_is_charged_in_parts(void **state)
{
	_cleanup_trace_ struct trace *trace = two_streams();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_device_idle_ struct device_idle idle = {0};
	const struct device_idle_place *place;
	struct trace_describe gaps;

	view(&own, trace, ours);
	assert_int_equal(device_idle_init(&idle, &own), 0);
	/* The device is busy up to 150 us: stream 20 works while stream 7 does not. */
	place = place_of(&idle, 0, MODEL_NONE);
	assert_int_equal(place->idle_ns, 160 * US);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_HOST], 30 * US);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_LAUNCH], 20 * US);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_KERNEL], 10 * US);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_OTHER], 100 * US);
	assert_false(place->is_listed[DEVICE_IDLE_UNKNOWN]);
	place = place_of(&idle, 0, 0);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_HOST], 80 * US);
	assert_int_equal(place->idle_ns, 210 * US);
	assert_int_equal(device_idle_describe(&idle, place, DEVICE_IDLE_HOST, &gaps), 0);
	assert_true(gaps.count == 1 && gaps.mean == 80 * US);
}

static void idle_time_of_hta_is_of_streams_and_whole_gaps(void **state)
{
	_cleanup_trace_ struct trace *trace = two_streams();
	_cleanup_trace_view_ struct trace_view theirs = {0};
	_cleanup_device_idle_ struct device_idle idle = {0};
	const struct device_idle_place *place;

	view(&theirs, trace, hta);
	assert_int_equal(hta->idle(&idle, &theirs), 0);
	assert_int_equal(idle.places.count, 2);
	place = place_of(&idle, 0, 0);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_HOST], 100 * US);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_KERNEL], 10 * US);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_OTHER], 100 * US);
}

static void overlapping_kernels_leave_no_negative_gaps(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0}, theirs = {0};
	_cleanup_device_idle_ struct device_idle idle = {0}, hta_idle = {0};

	example_launch(trace, "long", 7, -20 * US, 5 * US, 0, 100 * US, 1);
	example_launch(trace, "inside", 7, -10 * US, 5 * US, 10 * US, 20 * US, 2);
	example_launch(trace, "after", 7, -5 * US, 2 * US, 110 * US, 20 * US, 3);
	view(&own, trace, ours);
	assert_int_equal(device_idle_init(&idle, &own), 0);
	assert_int_equal(place_of(&idle, 0, 0)->idle_ns, 10 * US);
	view(&theirs, trace, hta);
	assert_int_equal(hta->idle(&hta_idle, &theirs), 0);
	assert_int_equal(place_of(&hta_idle, 0, 0)->by_cause_ns[DEVICE_IDLE_KERNEL], -90 * US);
	assert_int_equal(place_of(&hta_idle, 0, 0)->by_cause_ns[DEVICE_IDLE_OTHER], 80 * US);
}

static void gaps_before_unlaunched_work_are_unknown(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_device_idle_ struct device_idle idle = {0};

	example_device(trace, TRACE_KERNEL, "a", 0, 7, 0, 10 * US, 0);
	example_device(trace, TRACE_KERNEL, "b", 0, 7, 15 * US, 10 * US, 0);
	view(&own, trace, ours);
	assert_int_equal(device_idle_init(&idle, &own), 0);
	assert_int_equal(place_of(&idle, 0, MODEL_NONE)->by_cause_ns[DEVICE_IDLE_UNKNOWN], 5 * US);
}

/* HTA takes the first row for the launch of work whose correlation no call has, and of no other. */
static void hta_waits_for_the_host_where_there_is_a_correlation(void **state)
{
	const uint64_t correlations[] = {0, 9};

	for (size_t i = 0; i < ARRAY_SIZE(correlations); i++) {
		_cleanup_trace_ struct trace *trace = example_trace_new();
		_cleanup_trace_view_ struct trace_view theirs = {0};
		_cleanup_device_idle_ struct device_idle idle = {0};
		enum device_idle_cause cause =
			correlations[i] ? DEVICE_IDLE_HOST : DEVICE_IDLE_OTHER;

		example_host(trace, TRACE_CPU_OP, "first", 100, 50 * US, 10 * US, 0);
		example_device(trace, TRACE_KERNEL, "a", 0, 7, 0, 10 * US, 0);
		example_device(trace, TRACE_KERNEL, "b", 0, 7, 60 * US, 10 * US, correlations[i]);
		view(&theirs, trace, hta);
		assert_int_equal(hta->idle(&idle, &theirs), 0);
		assert_int_equal(place_of(&idle, 0, 0)->by_cause_ns[cause], 50 * US);
	}
}

/*
 * A device that is idle but for two pieces of work: a copy from pageable memory keeps its call for
 * 463 ms before it starts, and before that the program was in a synchronisation.
 */
static void blocking_calls_are_a_cause_of_their_own(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_trace_results_ struct trace_results results = {
		.definitions = &own_definitions, .views = &own, .count = 1};
	struct trace_summary summary;
	const struct device_idle_place *place;
	uint32_t row;

	example_launch(trace, "a", 7, -20 * US, 5 * US, 0, 1000 * US, 1);
	example_host(
		trace, TRACE_RUNTIME, "cudaStreamSynchronize", EXAMPLE_PID, 500 * US, 600 * US, 9);
	example_host(trace, TRACE_PYTHON_FUNCTION, "train.py(12): load", EXAMPLE_PID, 1150 * US,
		470000 * US, 0);
	example_host(trace, TRACE_PYTHON_FUNCTION, "torch/x.py(3): to", EXAMPLE_PID, 1160 * US,
		469000 * US, 0);
	example_host(trace, TRACE_CPU_OP, "aten::_to_copy", EXAMPLE_PID, 1170 * US, 468000 * US, 0);
	example_host(trace, TRACE_CPU_OP, "aten::copy_", EXAMPLE_PID, 1180 * US, 467000 * US, 0);
	row = example_host(
		trace, TRACE_RUNTIME, "cudaMemcpyAsync", EXAMPLE_PID, 1200 * US, 463000 * US, 2);
	example_device(trace, TRACE_MEMCPY, "Memcpy HtoD (Pageable -> Device)", 0, 7, 464000 * US,
		200 * US, 2);
	view(&own, trace, ours);
	assert_int_equal(trace_summary_init(&summary, &results), 0);
	place = place_of(trace_results_idle(&results, 0), 0, MODEL_NONE);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_BLOCKED], (100 + 462800) * US);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_HOST], 100 * US);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_LAUNCH], 0);
	assert_int_equal(summary.longest_block.row, row);
	assert_int_equal(summary.longest_block.idle_ns, 462800 * US);
	assert_string_equal(trace_text(trace, trace->events.items[summary.longest_block.op].name),
		"aten::copy_");
	assert_string_equal(
		trace_text(trace, trace->events.items[summary.longest_block.python].name),
		"train.py(12): load");
	/* With two launches other advice would be chance. */
	assert_int_equal(summary.advice, TRACE_ADVICE_BLOCKING);
	assert_int_equal(
		trace_summary_saves_ns(&summary, TRACE_ADVICE_BLOCKING), (100 + 462800) * US);
}

/* A short call that hands a copy over, and one that waits for what was launched, block nothing. */
static void calls_that_hand_work_over_do_not_block(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_device_idle_ struct device_idle idle = {0};
	const struct device_idle_place *place;

	example_launch(trace, "a", 7, -20 * US, 5 * US, 0, 10 * US, 1);
	example_host(trace, TRACE_RUNTIME, "cudaMemcpyAsync", EXAMPLE_PID, 20 * US, 99 * US, 2);
	example_device(trace, TRACE_MEMCPY, "Memcpy HtoD", 0, 7, 60 * US, 10 * US, 2);
	example_host(trace, TRACE_RUNTIME, "cudaLaunchKernel", EXAMPLE_PID, 120 * US, 5 * US, 3);
	example_host(
		trace, TRACE_RUNTIME, "cudaDeviceSynchronize", EXAMPLE_PID, 126 * US, 200 * US, 4);
	example_device(trace, TRACE_KERNEL, "b", 0, 7, 300 * US, 10 * US, 3);
	view(&own, trace, ours);
	assert_int_equal(device_idle_init(&idle, &own), 0);
	place = place_of(&idle, 0, MODEL_NONE);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_BLOCKED], 0);
	assert_int_equal(place->by_cause_ns[DEVICE_IDLE_LAUNCH], (40 + 180) * US);
}

/* One first launch of a second does not hide what a hundred others take. */
static void medians_are_beside_means(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_trace_results_ struct trace_results results = {
		.definitions = &own_definitions, .views = &own, .count = 1};
	const struct kernel_row *row;

	example_device(trace, TRACE_KERNEL, "k", 0, 7, 0, 1000000 * US, 0);
	for (int i = 1; i <= 100; i++)
		example_device(trace, TRACE_KERNEL, "k", 0, 7, (1000000 + i * 100) * US,
			(i % 2 ? 10 : 12) * US, 0);
	view(&own, trace, ours);
	row = trace_results_kernels(&results)->rows.items;
	assert_int_equal(row->median_ns, 12 * US);
	assert_true(row->mean_ns > 9000 * US);
}

/* ---- what the host did ---- */

static const struct idle_row *host_row(const struct idle_rows *waits, const char *name)
{
	array_foreach (&waits->rows, row) {
		if (idle_row_is_host(row) &&
			(name ? row->name && strcmp(row->name, name) == 0 : !row->name))
			return row;
	}
	fail_msg("no row of %s", name ? name : "nothing");
	return NULL;
}

static void host_waits_are_charged_to_the_innermost_row(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_trace_results_ struct trace_results results = {
		.definitions = &own_definitions, .views = &own, .count = 1};
	const struct idle_rows *waits;

	example_launch(trace, "a", 7, 0, 5 * US, 10 * US, 10 * US, 1);
	/* The GPU is idle from 20 us to 115 us; the launch begins at 110 us. */
	example_host(trace, TRACE_USER_ANNOTATION, "step", EXAMPLE_PID, 30 * US, 60 * US, 0);
	example_host(trace, TRACE_CPU_OP, "load", EXAMPLE_PID, 40 * US, 30 * US, 0);
	example_host(trace, TRACE_CPU_OP, "elsewhere", EXAMPLE_PID + 1, 0, 200 * US, 0);
	example_launch(trace, "b", 7, 110 * US, 2 * US, 115 * US, 10 * US, 2);
	view(&own, trace, ours);
	waits = trace_results_idle_rows(&results);
	assert_non_null(waits);
	assert_int_equal(waits->host_ns, 90 * US);
	assert_int_equal(waits->rows.count, 4); /* and the launch */
	assert_int_equal(host_row(waits, "load")->time_ns, 30 * US);
	assert_int_equal(host_row(waits, "step")->time_ns, 30 * US);
	assert_int_equal(host_row(waits, "step")->gaps, 1);
	assert_int_equal(host_row(waits, NULL)->time_ns, 30 * US);
	assert_string_equal(idle_row_kind(host_row(waits, "load")), "operator");
}

/* ---- queues ---- */

/* A graph of three kernels by one launch, on two streams, and a kernel behind it. */
static struct trace *graph(void)
{
	struct trace *trace = example_trace_new();

	example_host(trace, TRACE_RUNTIME, "cudaGraphLaunch", EXAMPLE_PID, 0, 10 * US, 1);
	example_device(trace, TRACE_KERNEL, "a", 0, 7, 30 * US, 10 * US, 1);
	example_device(trace, TRACE_KERNEL, "b", 0, 7, 40 * US, 10 * US, 1);
	example_device(trace, TRACE_KERNEL, "c", 0, 20, 35 * US, 10 * US, 1);
	example_launch(trace, "d", 7, 12 * US, 8 * US, 50 * US, 10 * US, 2);
	return trace;
}

static void a_graph_waits_once_on_each_stream(void **state)
{
	_cleanup_trace_ struct trace *trace = graph();
	_cleanup_trace_view_ struct trace_view own = {0}, theirs = {0};
	_cleanup_queue_ struct queue queue = {0}, hta_queue = {0};
	const struct queue_stream *stream;

	view(&own, trace, ours);
	assert_int_equal(queue_init(&queue, &own), 0);
	assert_int_equal(queue.streams.count, 2);
	/* 1 from 10 us, 2 from 20 us, 1 from 30 us, 0 from 50 us. */
	stream = &queue.streams.items[0];
	assert_int_equal(stream->launches, 2);
	assert_int_equal(stream->longest, 2);
	assert_int_equal(stream->span_ns, 40 * US);
	assert_int_equal(stream->empty_ns, 0);
	assert_true(stream->mean == 1.25);
	assert_int_equal(queue.streams.items[1].launches, 1);
	/* HTA does not know graphs, and counts from the call's begin. */
	view(&theirs, trace, hta);
	assert_int_equal(hta->queue(&hta_queue, &theirs), 0);
	assert_int_equal(hta_queue.streams.count, 1);
	assert_int_equal(hta_queue.streams.items[0].span_ns, 38 * US);
}

static void work_that_starts_within_its_call_never_waits(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_queue_ struct queue queue = {0};

	example_launch(trace, "a", 7, 0, 50 * US, 20 * US, 10 * US, 1);
	view(&own, trace, ours);
	assert_int_equal(queue_init(&queue, &own), 0);
	assert_int_equal(queue.streams.items[0].longest, 0);
	assert_true(queue.streams.items[0].mean == 0);
}

/* ---- calls ---- */

static const struct call_use *use_of(const struct calls *calls, const char *name)
{
	array_foreach (&calls->rows, use) {
		if (strcmp(use->name, name) == 0)
			return use;
	}
	fail_msg("no call %s", name);
	return NULL;
}

/* A moment of a thread counts once, however many calls it is in. */
static void calls_within_calls(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_calls_ struct calls calls = {0};

	example_host(trace, TRACE_RUNTIME, "cudaLaunchKernel", 1, 100 * US, 50 * US, 1);
	example_host(trace, TRACE_DRIVER, "cuLibraryLoadData", 1, 110 * US, 30 * US, 0);
	example_host(trace, TRACE_DRIVER, "cuLibraryGetModule", 1, 120 * US, 5 * US, 0);
	example_host(trace, TRACE_RUNTIME, "cudaLaunchKernel", 1, 200 * US, 10 * US, 2);
	example_host(trace, TRACE_RUNTIME, "cudaMalloc", 2, 120 * US, 7 * US, 3);
	example_host(trace, TRACE_CPU_OP, "aten::empty", 2, 119 * US, 20 * US, 0);
	view(&own, trace, ours);
	assert_int_equal(calls_init(&calls, &own), 0);
	assert_int_equal(calls.rows.count, 4);
	assert_string_equal(calls.rows.items[0].name, "cudaLaunchKernel");
	assert_int_equal(calls.rows.items[0].count, 2);
	assert_int_equal(calls.rows.items[0].total_ns, 60 * US);
	assert_int_equal(calls.rows.items[0].longest_ns, 50 * US);
	assert_true(use_of(&calls, "cuLibraryLoadData")->is_load);
	assert_false(use_of(&calls, "cudaMalloc")->is_load);
	assert_int_equal(calls.covered_ns, (50 + 10 + 7) * US);
	assert_int_equal(calls.load_ns, 30 * US);
	assert_int_equal(calls.others, 0); /* of recordings alone */
}

/* ---- launches ---- */

static void a_graph_is_one_launch(void **state)
{
	_cleanup_trace_ struct trace *trace = graph();
	_cleanup_trace_view_ struct trace_view own = {0}, theirs = {0};
	_cleanup_launches_ struct launches launches = {0}, hta_launches = {0};
	struct trace_describe latency;

	view(&own, trace, ours);
	assert_int_equal(launches_init(&launches, &own), 0);
	assert_int_equal(launches.rows.count, 2);
	assert_int_equal(launches.rows.items[0].works, 3);
	assert_int_equal(launches.rows.items[0].work_ns, 30 * US);
	assert_int_equal(launches.rows.items[0].delay_ns, 20 * US);
	assert_int_equal(launches.rows.items[0].latency_ns, 30 * US);
	/* The second found work on its stream. */
	assert_int_equal(launches.rows.items[1].latency_ns, -1);
	assert_int_equal(launches.calls.count, 2);
	assert_int_equal(launches.calls.items[0].works, 3);
	assert_int_equal(launches_describe(&launches, 1, LAUNCH_LATENCY, &latency), 0);
	assert_int_equal(latency.count, 0);
	view(&theirs, trace, hta);
	assert_int_equal(hta->launches(&hta_launches, &theirs), 0);
	assert_int_equal(hta_launches.rows.count, 1);
}

static void short_work_and_long_calls_are_counted(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_launches_ struct launches launches = {0};

	example_launch(trace, "a", 7, 0, 60 * US, 70 * US, 10 * US, 1);
	example_launch(trace, "a", 7, 100 * US, 10 * US, 300 * US, 20 * US, 2);
	view(&own, trace, ours);
	assert_int_equal(launches_init(&launches, &own), 0);
	assert_int_equal(launches.calls.count, 1);
	assert_int_equal(launches.calls.items[0].short_works, 1);
	assert_int_equal(launches.calls.items[0].long_calls, 1);
	assert_int_equal(launches.calls.items[0].long_delays, 1);
}

/* ---- kernels ---- */

static void ranks_are_one_table(void **state)
{
	_cleanup_trace_ struct trace *one = example_trace_new(), *two = example_trace_new();
	struct trace_view views[2];
	_cleanup_kernels_ struct kernels ranks = {0};
	const struct kernel_row *row;

	one->rank = 4;
	two->rank = 5;
	example_device(one, TRACE_KERNEL, "gemm", 0, 7, 0, 10, 0);
	example_device(one, TRACE_KERNEL, "gemm", 0, 7, 20, 20, 0);
	example_device(two, TRACE_KERNEL, "only here", 0, 7, 0, 5, 0);
	example_device(two, TRACE_KERNEL, "gemm", 0, 7, 20, 60, 0);
	view(&views[0], one, ours);
	view(&views[1], two, ours);
	assert_int_equal(kernels_init(&ranks, views, 2), 0);
	assert_int_equal(ranks.rows.count, 2);
	assert_int_equal(ranks.total_ns, 95);
	row = &ranks.rows.items[0];
	assert_string_equal(row->name, "gemm");
	assert_int_equal(row->count, 3);
	assert_true(row->mean_ns == 30);
	assert_true(fabs(row->deviation_ns - 26.457513110645905) < 1e-9);
	assert_int_equal(row->least_total_ns, 30);
	assert_int_equal(row->least_rank, 4);
	assert_int_equal(row->most_total_ns, 60);
	assert_int_equal(row->most_rank, 5);
	assert_int_equal(ranks.rows.items[1].least_total_ns, 0);
	trace_view_done(&views[0]);
	trace_view_done(&views[1]);
}

/* ---- copies ---- */

static void copies_are_as_fast_as_bytes_over_time(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_copies_ struct copies copies = {0};
	const struct copies_row *row;

	for (int i = 0; i < 3; i++)
		example_device(trace, TRACE_MEMCPY, "Memcpy HtoD (Pinned -> Device)", 0, 7, i * 100,
			10, 0);
	trace->works.items[0].bytes = 100;
	trace->works.items[1].bytes = 300;
	/* Finer than the row's time: 20 ns. */
	trace->works.items[1].bandwidth_gbps = 15;
	view(&own, trace, ours);
	assert_int_equal(copies_init(&copies, &own), 0);
	assert_int_equal(copies.rows.count, 1);
	row = &copies.rows.items[0];
	assert_int_equal(row->count, 3);
	assert_int_equal(row->without_bytes, 1);
	assert_int_equal(row->bytes, 400);
	assert_true(row->time_ns == 30);
	assert_true(row->least_gbps == 10 && row->most_gbps == 15);
}

/* ---- operators ---- */

static void work_belongs_to_the_operator_around_its_launch(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_trace_ops_ struct trace_ops ops = {0};
	const struct trace_ops_row *row;

	for (int i = 0; i < 2; i++) {
		int64_t at = i * 1000 * US;

		/* The inner operator has ended before the outer one launches again. */
		example_host(trace, TRACE_CPU_OP, "aten::linear", EXAMPLE_PID, at, 100 * US, 0);
		example_host(
			trace, TRACE_CPU_OP, "aten::mm", EXAMPLE_PID, at + 10 * US, 40 * US, 0);
		example_launch(trace, "gemm", 7, at + 20 * US, 5 * US, at + 200 * US, 50 * US,
			(uint64_t)(2 * i + 1));
		example_launch(trace, "bias", 7, at + 70 * US, 5 * US, at + 260 * US, 10 * US,
			(uint64_t)(2 * i + 2));
	}
	view(&own, trace, ours);
	assert_int_equal(trace_ops_init(&ops, &own), 0);
	assert_int_equal(ops.rows.count, 2);
	row = &ops.rows.items[0];
	assert_string_equal(trace_text(trace, row->name), "aten::mm");
	assert_int_equal(row->count, 2);
	assert_int_equal(row->work_ns, 100 * US);
	assert_int_equal(row->launch_delay_ns, 20 * US);
	assert_int_equal(row->work_delay_ns, 360 * US);
	assert_int_equal(row->works, 1);
	assert_string_equal(trace_text(trace, ops.sequences.items[row->first]), "gemm");
	assert_string_equal(trace_text(trace, ops.rows.items[1].name), "aten::linear");
}

static void all_work_of_a_graph_belongs_to_its_operator(void **state)
{
	_cleanup_trace_ struct trace *trace = graph();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_trace_ops_ struct trace_ops ops = {0};

	example_host(trace, TRACE_CPU_OP, "replay", EXAMPLE_PID, -5 * US, 16 * US, 0);
	view(&own, trace, ours);
	assert_int_equal(trace_ops_init(&ops, &own), 0);
	assert_int_equal(ops.rows.count, 2);
	assert_string_equal(trace_text(trace, ops.rows.items[0].name), "replay");
	assert_int_equal(ops.rows.items[0].works, 3);
	assert_int_equal(ops.rows.items[1].name, 0); /* no operator around it */
}

/* ---- the answer ---- */

static void the_advice_follows_the_cause_of_idle_time(void **state)
{
	/* Kernels of 2 us: launched every 10 us, or every 500 us, by calls of 6 us or 400 us. */
	static const struct {
		int64_t every_us, call_us;
		unsigned advice;
	} cases[] = {
		{10, 6, TRACE_ADVICE_LAUNCH_BOUND},
		{500, 6, TRACE_ADVICE_HOST_BOUND},
		{500, 400, TRACE_ADVICE_SLOW_LAUNCHES},
	};

	(void)state;
	for (size_t each = 0; each < ARRAY_SIZE(cases); each++) {
		_cleanup_trace_ struct trace *trace = example_trace_new();
		_cleanup_trace_view_ struct trace_view own = {0};
		_cleanup_trace_results_ struct trace_results results = {
			.definitions = &own_definitions, .views = &own, .count = 1};
		struct trace_summary summary;

		for (int i = 0; i < 40; i++) {
			int64_t at = i * cases[each].every_us * US, call = cases[each].call_us * US;

			example_launch(
				trace, "k", 7, at, call, at + call + US, 2 * US, (uint64_t)i + 1);
		}
		view(&own, trace, ours);
		assert_int_equal(trace_summary_init(&summary, &results), 0);
		assert_int_equal(summary.devices, 1);
		assert_int_equal(summary.launches, 40);
		assert_int_equal(summary.short_launches, 40);
		assert_int_equal(summary.advice, cases[each].advice);
	}
}

static void exposed_communication_and_busy_kernels_are_told(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_trace_results_ struct trace_results results = {
		.definitions = &own_definitions, .views = &own, .count = 1};
	struct trace_summary summary;

	for (int i = 0; i < 20; i++) {
		example_launch(trace, "gemm", 7, i * 100 * US - 150 * US, US, i * 100 * US, 85 * US,
			(uint64_t)(2 * i + 1));
		example_launch(trace, "ncclDevKernel", 20, i * 100 * US - 140 * US, US,
			i * 100 * US + 80 * US, 20 * US, (uint64_t)(2 * i + 2));
	}
	view(&own, trace, ours);
	assert_int_equal(trace_summary_init(&summary, &results), 0);
	assert_int_equal(summary.span_ns, 2000 * US);
	assert_int_equal(summary.idle_ns, 0);
	assert_int_equal(summary.only_communication_ns, 300 * US);
	assert_int_equal(summary.communication_beside_compute_ns, 100 * US);
	assert_int_equal(summary.advice, TRACE_ADVICE_COMMUNICATION | TRACE_ADVICE_KERNELS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_described_as_by_pandas),
		cmocka_unit_test(idle_time_is_charged_in_parts),
		cmocka_unit_test(idle_time_of_hta_is_of_streams_and_whole_gaps),
		cmocka_unit_test(overlapping_kernels_leave_no_negative_gaps),
		cmocka_unit_test(gaps_before_unlaunched_work_are_unknown),
		cmocka_unit_test(medians_are_beside_means),
		cmocka_unit_test(blocking_calls_are_a_cause_of_their_own),
		cmocka_unit_test(calls_that_hand_work_over_do_not_block),
		cmocka_unit_test(hta_waits_for_the_host_where_there_is_a_correlation),
		cmocka_unit_test(host_waits_are_charged_to_the_innermost_row),
		cmocka_unit_test(a_graph_waits_once_on_each_stream),
		cmocka_unit_test(work_that_starts_within_its_call_never_waits),
		cmocka_unit_test(calls_within_calls),
		cmocka_unit_test(a_graph_is_one_launch),
		cmocka_unit_test(short_work_and_long_calls_are_counted),
		cmocka_unit_test(ranks_are_one_table),
		cmocka_unit_test(copies_are_as_fast_as_bytes_over_time),
		cmocka_unit_test(work_belongs_to_the_operator_around_its_launch),
		cmocka_unit_test(all_work_of_a_graph_belongs_to_its_operator),
		cmocka_unit_test(the_advice_follows_the_cause_of_idle_time),
		cmocka_unit_test(exposed_communication_and_busy_kernels_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
