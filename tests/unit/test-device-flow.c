/* SPDX-License-Identifier: Apache-2.0 */
/* How launches reach devices, and what runs at the same time, in models made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "analyses/device/advice.h"
#include "analyses/device/device_launches.h"
#include "analyses/device/device_overlap.h"
#include "model/builder.h"

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
		work.correlation = i + 1;
		assert_int_equal(model_builder_visitor.device_work(builder, &work), 0);
	}
	assert_int_equal(model_builder_finish(builder, NULL, &model), 0);
	model_builder_free(builder);
	return model;
}

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
	KERNEL(500, 510, 540, 550),
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
	_cleanup_model_ struct model *model = build(launched, ARRAY_SIZE(launched));
	_cleanup_device_launches_ struct device_launches launches = {0};
	const struct device_launches_device *device;

	assert_int_equal(device_launches_init(&launches, model), 0);
	assert_int_equal(launches.devices.count, 2);
	device = &launches.devices.items[0];
	assert_string_equal(device->name, "a device");
	assert_int_equal(device->launches, 6);
	assert_int_equal(device->not_counted, 1);
	assert_int_equal(device->span_ns, 570);
	assert_int_equal(device->depth_time, 90 + 80 + 15);
	assert_int_equal(device->empty_ns, 570 - 100 - 15);
	assert_int_equal(device->depth_max, 2);
	assert_int_equal((int)(device_launches_mean_depth(device) * 570 + 0.5), 185);
	device = &launches.devices.items[1];
	assert_int_equal(device->launches, 1);
	assert_int_equal(device->span_ns, 0);
	assert_true(device_launches_mean_depth(device) == 0);
}

static void test_latency(void **state)
{
	_cleanup_model_ struct model *model = build(launched, ARRAY_SIZE(launched));
	_cleanup_device_launches_ struct device_launches launches = {0};
	const struct device_launches_device *device;

	assert_int_equal(device_launches_init(&launches, model), 0);
	device = &launches.devices.items[0];
	assert_int_equal(device->kernel_launches, 5);
	assert_int_equal(device->short_kernels, 2);
	assert_int_equal(device->call.count, 5);
	assert_int_equal(device->call.median_ns, 10);
	assert_int_equal(device->call.p90_ns, 40);
	/* The second and third found work in their queue. */
	assert_int_equal(device->latency.count, 3);
	assert_int_equal(device->latency.median_ns, 20);
	assert_int_equal(device->latency.p99_ns, 25);
}

/* Queues of one device, and threads that launch at one moment, are told apart. */
static void test_queues_and_threads(void **state)
{
	struct capture_device_work works[] = {
		KERNEL(10, 20, 30, 130),
		KERNEL(40, 50, 60, 70),
		KERNEL(40, 50, 75, 80),
	};
	_cleanup_device_launches_ struct device_launches launches = {0};
	_cleanup_model_ struct model *model = NULL;

	works[1].queue = works[2].queue = 2;
	works[2].tid = PID + 1;
	model = build(works, ARRAY_SIZE(works));
	assert_int_equal(device_launches_init(&launches, model), 0);
	assert_int_equal(launches.devices.items[0].launches, 3);
	assert_int_equal(launches.devices.items[0].latency.count, 2);
	assert_int_equal(launches.devices.items[0].latency.p99_ns, 20);
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
	_cleanup_model_ struct model *model = build(works, ARRAY_SIZE(works));
	_cleanup_device_overlap_ struct device_overlap overlap = {0};
	const struct device_overlap_device *device;
	uint64_t sum_ns = 0;

	assert_int_equal(device_overlap_init(&overlap, model), 0);
	assert_int_equal(overlap.devices.count, 2);
	assert_int_equal(overlap.devices.items[0].by_set[DEVICE_COPY], 1);
	device = &overlap.devices.items[1];
	assert_int_equal(device->span_ns, 352);
	assert_int_equal(device->by_set[0], 100);
	assert_int_equal(device->by_set[DEVICE_COMPUTE], 50 + 50);
	assert_int_equal(device->by_set[DEVICE_COPY], 40 + 2);
	assert_int_equal(device->by_set[DEVICE_COMMUNICATION], 50);
	assert_int_equal(device->by_set[DEVICE_COMPUTE | DEVICE_COPY], 50 - 1);
	assert_int_equal(device->by_set[DEVICE_COPY | DEVICE_COMMUNICATION], 10);
	assert_int_equal(device->by_set[DEVICE_COMPUTE | DEVICE_COPY | DEVICE_COMMUNICATION], 1);
	for (int set = 0; set < DEVICE_ACTIVITY_SETS; set++)
		sum_ns += device->by_set[set];
	assert_int_equal(sum_ns, device->span_ns);
	assert_int_equal(device_overlap_total_ns(device, DEVICE_COMPUTE), 150);
	assert_int_equal(device_overlap_total_ns(device, DEVICE_COPY), 102);
	assert_int_equal(device_overlap_hidden_ns(device, DEVICE_COPY), 50);
	assert_int_equal(device_overlap_total_ns(device, DEVICE_COMMUNICATION), 61);
	assert_int_equal(device_overlap_hidden_ns(device, DEVICE_COMMUNICATION), 1);
}

static void test_advice(void **state)
{
	struct device_overlap_device overlap = {.span_ns = 1000000, .by_set = {600000, 400000}};
	struct device_launches_device launches = {.launches = 100,
		.kernel_launches = 100,
		.short_kernels = 62,
		.span_ns = 1000000,
		.empty_ns = 600000};
	struct trace_idle_place idle = {0};

	assert_int_equal(device_advice(&overlap, &launches, NULL), DEVICE_ADVICE_LAUNCH_BOUND);
	launches.short_kernels = 40;
	assert_int_equal(device_advice(&overlap, &launches, NULL), DEVICE_ADVICE_HOST_BOUND);
	launches.empty_ns = 400000;
	assert_int_equal(device_advice(&overlap, &launches, NULL), DEVICE_ADVICE_QUEUED);
	/* Few launches, but 60 % idle. */
	launches.launches = 10;
	assert_int_equal(device_advice(&overlap, &launches, NULL), DEVICE_ADVICE_QUEUED);
	idle.by_cause_ns[TRACE_IDLE_BLOCKED] = 400000;
	assert_int_equal(device_advice(&overlap, &launches, &idle), DEVICE_ADVICE_BLOCKING);
	overlap.by_set[0] = 290000;
	assert_int_equal(device_advice(&overlap, &launches, &idle), DEVICE_ADVICE_NONE);
	launches.launches = 100;
	overlap.by_set[0] = 190000;
	overlap.by_set[DEVICE_COMPUTE] = 810000;
	assert_int_equal(device_advice(&overlap, &launches, NULL), DEVICE_ADVICE_NONE);
	overlap.by_set[DEVICE_COPY] = 300000;
	overlap.by_set[DEVICE_COMPUTE] = 510000;
	assert_int_equal(device_advice(&overlap, &launches, NULL), DEVICE_ADVICE_COPIES);
	overlap.by_set[DEVICE_COMMUNICATION] = 310000;
	overlap.by_set[DEVICE_COMPUTE] = 200000;
	assert_int_equal(device_advice(&overlap, &launches, NULL), DEVICE_ADVICE_COMMUNICATION);
	assert_string_equal(device_advice_name(DEVICE_ADVICE_COMMUNICATION), "communication");
	assert_null(device_advice_name(DEVICE_ADVICE_NONE));
}

/* Few launches with long gaps: not launching keeps the program. */
static void test_advice_between_long_gaps(void **state)
{
	const struct device_overlap_device overlap = {
		.span_ns = 60000000000, .by_set = {59000000000, 1000000000}};
	const struct device_launches_device launches = {.launches = 60,
		.kernel_launches = 60,
		.short_kernels = 60,
		.span_ns = 60000000000,
		.empty_ns = 59000000000};

	assert_int_equal(device_advice(&overlap, &launches, NULL), DEVICE_ADVICE_HOST_BOUND);
}

static void test_nothing(void **state)
{
	_cleanup_model_ struct model *model = build(NULL, 0);
	_cleanup_device_launches_ struct device_launches launches = {0};
	_cleanup_device_overlap_ struct device_overlap overlap = {0};

	assert_int_equal(device_launches_init(&launches, model), 0);
	assert_int_equal(launches.devices.count, 0);
	assert_int_equal(device_overlap_init(&overlap, model), 0);
	assert_int_equal(overlap.devices.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue_depth),
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_queues_and_threads),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_advice),
		cmocka_unit_test(test_advice_between_long_gaps),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
