/* SPDX-License-Identifier: Apache-2.0 */
/* How launches reach devices, and what runs at the same time, in recordings made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "analyses/device/launched_by.h"
#include "analyses/device/launches.h"
#include "analyses/device/queue.h"
#include "analyses/device/temporal.h"
#include "model/builder/builder.h"
#include "model/trace_capture.h"

#define PID 100

static struct model *build(const struct capture_device_work *works, size_t count)
{
	const struct capture_session session = {.sonde_version = "",
		.host = "",
		.kernel_release = "",
		.architecture = "",
		.unwind_mode = "bpf",
		.launch_stacks = "off",
		.period_ns = 1000000};
	struct model_builder *builder;
	struct model *model;

	assert_int_equal(model_builder_new(&builder), 0);
	assert_int_equal(model_builder_visitor.session(builder, &session), 0);
	for (size_t i = 0; i < count; i++) {
		struct capture_device_work work = works[i];

		work.pid = PID;
		work.tid = work.tid ? work.tid : PID;
		work.name = work.name ? work.name : "";
		work.device = work.device ? work.device : "a device";
		work.correlation = work.correlation ? work.correlation : i + 1;
		assert_int_equal(model_builder_visitor.device_work(builder, &work), 0);
	}
	assert_int_equal(model_builder_finish(builder, NULL, &model), 0);
	model_builder_free(builder);
	return model;
}

/* The rows of a recording of this work. */
struct rows {
	struct model *model;
	struct trace *trace;
	struct trace_view view;
};

static void rows_init(struct rows *rows, const struct capture_device_work *works, size_t count)
{
	const struct trace_view_options options = {0};

	rows->model = build(works, count);
	assert_int_equal(trace_of_recording(&rows->trace, rows->model), 0);
	assert_int_equal(trace_view_init(&rows->view, rows->trace, 0, &options), 0);
}

static void rows_done(struct rows *rows)
{
	trace_view_done(&rows->view);
	trace_free(rows->trace);
	model_free(rows->model);
}
#define _cleanup_rows_ _cleanup_(rows_done)

#define KERNEL(call_ns, call_end_ns, begin, end)                                                   \
	{                                                                                          \
		.kind = WIRE_DEVICE_KERNEL, .launch_ns = (call_ns),                                \
		.launch_duration_ns = (call_end_ns) - (call_ns), .start_ns = (begin),              \
		.end_ns = (end), .queue = 1                                                        \
	}

static const struct capture_device_work launched[] = {
	KERNEL(10, 20, 30, 130),    /* waits 10 ns, before the device's first work */
	KERNEL(30, 40, 130, 140),   /* waits 90 ns behind the first */
	KERNEL(50, 60, 140, 145),   /* waits 80 ns; shorter than its call */
	KERNEL(300, 340, 320, 330), /* has begun, and ended, when its call returns */
	{.kind = WIRE_DEVICE_READ,  /* a call that blocks */
		.launch_ns = 350,
		.launch_duration_ns = 50,
		.start_ns = 360,
		.end_ns = 390,
		.queue = 1},
	KERNEL(500, 510, 525, 535), /* two nodes of a graph: one launch, which waits 15 ns */
	{.kind = WIRE_DEVICE_KERNEL,
		.launch_ns = 500,
		.launch_duration_ns = 10,
		.start_ns = 540,
		.end_ns = 550,
		.correlation = 6,
		.queue = 1},
	{.kind = WIRE_DEVICE_KERNEL, .start_ns = 600, .end_ns = 610, .queue = 1},
	{.kind = WIRE_DEVICE_KERNEL,
		.launch_ns = 700,
		.launch_duration_ns = 10,
		.start_ns = 705,
		.end_ns = 900,
		.device = "another"},
};

static void test_queue_depth(void **state)
{
	_cleanup_rows_ struct rows rows;
	_cleanup_queue_ struct queue queue = {0};
	const struct queue_stream *stream;

	rows_init(&rows, launched, ARRAY_SIZE(launched));
	assert_int_equal(queue_init(&queue, &rows.view), 0);
	assert_int_equal(queue.streams.count, 2);
	/* From the return of the first call to the start of the last work. */
	stream = &queue.streams.items[0];
	assert_int_equal(stream->launches, 6);
	assert_int_equal(stream->span_ns, 525 - 20);
	assert_int_equal(stream->longest, 2);
	assert_int_equal((int)(stream->mean * 505 + 0.5), 10 + 90 + 80 + 15);
	assert_int_equal(stream->empty_ns, 505 - 10 - 100 - 15);
	assert_int_equal(queue.streams.items[1].launches, 1);
	assert_int_equal(queue.streams.items[1].span_ns, 0);
	assert_int_equal(rows.view.works_without_launch, 1);
}

static void test_latency(void **state)
{
	_cleanup_rows_ struct rows rows;
	_cleanup_launches_ struct launches launches = {0};
	struct trace_describe figure;

	rows_init(&rows, launched, ARRAY_SIZE(launched));
	assert_int_equal(launches_init(&launches, &rows.view), 0);
	assert_int_equal(launches.calls.count, 2);
	assert_string_equal(
		trace_text(rows.trace, launches.calls.items[0].name), "clEnqueueNDRangeKernel");
	assert_int_equal(launches.calls.items[0].launches, 6);
	assert_int_equal(launches.calls.items[0].works, 7);
	assert_int_equal(launches.calls.items[0].short_works, 2);
	assert_int_equal(launches_describe(&launches, 0, LAUNCH_CALL, &figure), 0);
	assert_true(figure.median == 10 && figure.most == 40);
	/* The second and third found work in their queue. */
	assert_int_equal(launches_describe(&launches, 0, LAUNCH_LATENCY, &figure), 0);
	assert_int_equal(figure.count, 4);
	assert_true(figure.least == 5 && figure.median == 20 && figure.most == 25);
}

/* From queueing to submitting, and from that to the start, of launches that have them. */
static void test_launch_times(void **state)
{
	struct capture_device_work works[] = {
		KERNEL(10, 20, 130, 140),
		KERNEL(30, 40, 150, 160),
		KERNEL(50, 60, 170, 180),
	};
	_cleanup_launches_ struct launches launches = {0};
	_cleanup_rows_ struct rows rows;
	struct trace_describe figure;

	works[0].queued_ns = 15;
	works[0].submit_ns = 25;
	works[1].submit_ns = 50;
	works[2].queued_ns = 55; /* says nothing of the device */
	rows_init(&rows, works, ARRAY_SIZE(works));
	assert_int_equal(launches_init(&launches, &rows.view), 0);
	assert_int_equal(launches_describe(&launches, 0, LAUNCH_SUBMIT, &figure), 0);
	assert_int_equal(figure.count, 1);
	assert_true(figure.median == 10);
	assert_int_equal(launches_describe(&launches, 0, LAUNCH_QUEUE, &figure), 0);
	assert_int_equal(figure.count, 2);
	assert_true(figure.least == 100 && figure.most == 105);
	assert_int_equal(launches_describe(&launches, 0, LAUNCH_CALL, &figure), 0);
	assert_int_equal(figure.count, 3);
}

/* Queues of one device, and threads that launch at one moment, are told apart. */
static void test_queues_and_threads(void **state)
{
	struct capture_device_work works[] = {
		KERNEL(10, 20, 30, 130),
		KERNEL(40, 50, 60, 70),
		KERNEL(40, 50, 75, 80),
	};
	_cleanup_launches_ struct launches launches = {0};
	_cleanup_rows_ struct rows rows;
	struct trace_describe latency;

	works[1].queue = works[2].queue = 2;
	works[2].tid = PID + 1;
	rows_init(&rows, works, ARRAY_SIZE(works));
	assert_int_equal(launches_init(&launches, &rows.view), 0);
	assert_int_equal(launches.rows.count, 3);
	assert_int_equal(launches_describe(&launches, 0, LAUNCH_LATENCY, &latency), 0);
	assert_int_equal(latency.count, 2);
	assert_true(latency.most == 20);
}

static void test_overlap(void **state)
{
	const struct capture_device_work works[] = {
		{.kind = WIRE_DEVICE_KERNEL, .start_ns = 100, .end_ns = 200},
		{.kind = WIRE_DEVICE_KERNEL, .start_ns = 110, .end_ns = 120}, /* counts once */
		{.kind = WIRE_DEVICE_WRITE, .start_ns = 150, .end_ns = 250},
		{.kind = WIRE_DEVICE_KERNEL,
			.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
			.start_ns = 240,
			.end_ns = 300},
		{.kind = WIRE_DEVICE_KERNEL, .name = "nccl", .start_ns = 160, .end_ns = 161},
		{.kind = WIRE_DEVICE_GRAPH, .start_ns = 400, .end_ns = 450},
		{.kind = WIRE_DEVICE_FILL, .start_ns = 450, .end_ns = 452},
		{.kind = WIRE_DEVICE_MIGRATE, .start_ns = 7, .end_ns = 8, .device = "another"},
	};
	const unsigned compute = 1 << TRACE_COMPUTE, memory = 1 << TRACE_MEMORY,
		       communication = 1 << TRACE_COMMUNICATION;
	_cleanup_rows_ struct rows rows;
	_cleanup_temporal_ struct temporal temporal = {0};
	const struct temporal_device *device;
	int64_t sum_ns;

	rows_init(&rows, works, ARRAY_SIZE(works));
	assert_int_equal(temporal_init(&temporal, &rows.view), 0);
	assert_int_equal(temporal.devices.count, 2);
	assert_string_equal(trace_device_name(rows.trace, 0), "another");
	assert_int_equal(temporal.devices.items[0].by_set_ns[memory], 1);
	device = &temporal.devices.items[1];
	assert_int_equal(temporal_span_ns(device), 352);
	assert_int_equal(device->idle_ns, 100);
	assert_int_equal(device->by_set_ns[compute], 50 + 50);
	assert_int_equal(device->by_set_ns[memory], 40 + 2);
	assert_int_equal(device->by_set_ns[communication], 50);
	assert_int_equal(device->by_set_ns[compute | memory], 50 - 1);
	assert_int_equal(device->by_set_ns[memory | communication], 10);
	assert_int_equal(device->by_set_ns[compute | memory | communication], 1);
	sum_ns = device->idle_ns;
	for (unsigned set = 1; set < TEMPORAL_SETS; set++)
		sum_ns += device->by_set_ns[set];
	assert_int_equal(sum_ns, 352);
	assert_int_equal(device->by_kind_ns[TRACE_COMPUTE], 150);
	assert_int_equal(device->by_kind_ns[TRACE_MEMORY], 102);
	assert_int_equal(temporal_ns(device, memory | compute), 50);
	assert_int_equal(device->by_kind_ns[TRACE_COMMUNICATION], 61);
	assert_int_equal(device->communication_beside_compute_ns, 1);
}

/* Nobody is named where there is neither a stack nor an operator. */
static void test_launched_by(void **state)
{
	_cleanup_rows_ struct rows rows;
	struct launched_by most;

	rows_init(&rows, launched, ARRAY_SIZE(launched));
	assert_int_equal(launched_by_find(&most, &rows.view,
				 &(struct launched_work){.kinds = 1U << TRACE_MEMORY}),
		0);
	assert_int_equal(most.all_ns, 30);
	assert_int_equal(most.time_ns, 0);
	assert_int_equal(most.frame, MODEL_NONE);
	assert_null(most.name);
}

static void test_nothing(void **state)
{
	_cleanup_rows_ struct rows rows;
	_cleanup_temporal_ struct temporal temporal = {0};
	_cleanup_launches_ struct launches launches = {0};

	rows_init(&rows, NULL, 0);
	assert_int_equal(temporal_init(&temporal, &rows.view), 0);
	assert_int_equal(temporal.devices.count, 0);
	assert_int_equal(launches_init(&launches, &rows.view), 0);
	assert_int_equal(launches.rows.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue_depth),
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_launch_times),
		cmocka_unit_test(test_queues_and_threads),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_launched_by),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
