/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The toy as a runtime of the injected library, by the steps of docs/adding-a-runtime.md. A real
 * one allocates nothing while the program launches, and numbers its kernels.
 */
#include "runtime.h"

#include <stdlib.h>

#include "driver.h"
#include "inject/inject.h"
#include "inject/launch/stack.h"

#define IDS    WIRE_DEVICE_IDS_OF(1)
#define DEVICE (IDS | 1)
#define QUEUE  (IDS | 1)
#define KERNEL (IDS | 1)

static _Atomic uint32_t in_flight;

static void *launched(const char *kernel)
{
	struct wire_device_activity *activity;
	uint64_t correlation, enter_ns;

	if (!inject_is_open())
		return NULL;
	enter_ns = inject_now_ns();
	correlation = inject_correlation();
	activity = correlation ? calloc(1, sizeof(*activity)) : NULL;
	if (!activity)
		return NULL;
	inject_launch_stack(correlation, enter_ns);
	inject_define(WIRE_RECORD_DEVICE_NAME, KERNEL, 0, kernel);
	*activity = (struct wire_device_activity){
		.record = {.type = WIRE_RECORD_DEVICE_ACTIVITY, .length_bytes = sizeof(*activity)},
		.correlation = correlation,
		.enter_ns = enter_ns,
		.before_ns = inject_now_ns(),
		.device = DEVICE,
		.queue = QUEUE,
		.name = KERNEL,
		.tid = inject_tid(),
		.kind = WIRE_DEVICE_KERNEL,
	};
	atomic_fetch_add(&in_flight, 1);
	return activity;
}

static void ended(void *launch, uint64_t start_ns, uint64_t end_ns)
{
	struct wire_device_activity *activity = launch;

	activity->queued = activity->submit = activity->before_ns;
	activity->start = start_ns;
	activity->end = end_ns;
	activity->after_ns = inject_now_ns();
	inject_write(&activity->record);
	free(activity);
	atomic_fetch_sub(&in_flight, 1);
}

/* The door: the driver calls it. */
__attribute__((visibility("default"))) toy_tracer_function toy_tracer;

const struct toy_tracer *toy_tracer(void)
{
	static const struct toy_tracer tracer = {launched, ended};

	return runtime_enter(&toy_runtime) ? &tracer : NULL;
}

/* What ids stand for is told once. */
static bool start(void)
{
	return inject_define(WIRE_RECORD_DEVICE_DEVICE, DEVICE, 0, "Toy device") &&
	       inject_define(WIRE_RECORD_DEVICE_QUEUE, QUEUE, DEVICE, "");
}

/* The toy's launches return when the work has ended: nothing is left to write. */
static void stop(void)
{
	if (atomic_load(&in_flight))
		abort();
}

const struct runtime toy_runtime = {
	.start = start,
	.stop = stop,
};
