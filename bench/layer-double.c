/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer-double closed|recorded BURSTS [direct|layer]: what sonde's OpenCL layer costs a launch,
 * with a double in the place of the driver, whose own cost is next to none and does not change.
 * Launches in bursts, straight to the double and through the layer in turns, 20 calls deep, and
 * prints the nanoseconds of a launch as JSON. "recorded": to be run by sonde; "closed": with a gate
 * of its own, which is closed, in the folder $SONDE_SESSION, and the library that $OPENCL_LAYERS
 * names. With one way named, all bursts go it: for counting instructions.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/closed_gate.h"
#include "inject/opencl/abi.h"

#define BURST      200
#define MAX_BURSTS 20000
#define DEPTH      20
#define PAUSE_NS   1000000 /* the collector reads meanwhile */

typedef cl_int init_layer(cl_uint count, const cl_function *target, cl_uint *ret_count,
	const cl_function **ret_dispatch);

static cl_function driver[CL_SLOT_COUNT];
static cl_function layered[CL_SLOT_COUNT];
static char a_queue[64], a_kernel[64], an_event[64]; /* only their addresses count */

struct pending {
	cl_event_callback *callback;
	void *context;
};

static struct pending pending[BURST];
static size_t pending_count;

/* ---- the double ---- */

static cl_int double_launch(cl_handle to, cl_handle what, cl_uint dimensions, const size_t *offset,
	const size_t *global, const size_t *local, CL_EVENTS)
{
	if (event)
		*event = an_event;
	return CL_SUCCESS;
}

/* Work ends when run_device() says so, outside of what is measured. */
static cl_int double_set_event_callback(
	cl_handle of, cl_int status, cl_event_callback *callback, void *context)
{
	pending[pending_count++] = (struct pending){callback, context};
	return CL_SUCCESS;
}

static void run_device(void)
{
	for (size_t i = 0; i < pending_count; i++)
		pending[i].callback(an_event, CL_COMPLETE, pending[i].context);
	pending_count = 0;
}

static cl_int double_count(cl_handle object)
{
	return CL_SUCCESS;
}

/* The host's clock is the device's. */
static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static uint64_t queued_ns;

static cl_int double_info(
	cl_handle object, cl_uint what, size_t size, void *ret_value, size_t *ret_size)
{
	const cl_ulong value = what == CL_QUEUE_PROPERTIES ? CL_QUEUE_PROFILING_ENABLE
			       : what == CL_QUEUE_DEVICE   ? (uintptr_t)a_queue
							   : queued_ns + what;

	if (what == CL_DEVICE_NAME || what == CL_KERNEL_FUNCTION_NAME)
		snprintf(ret_value, size, "double");
	else
		memcpy(ret_value, &value, size < sizeof(value) ? size : sizeof(value));
	return CL_SUCCESS;
}

static cl_int not_doubled(void)
{
	return CL_INVALID_VALUE;
}

static void make_driver(void)
{
	for (size_t i = 0; i < CL_SLOT_COUNT; i++)
		driver[i] = (cl_function)not_doubled;
	driver[CL_SLOT_ND_RANGE_KERNEL] = (cl_function)double_launch;
	driver[CL_SLOT_SET_EVENT_CALLBACK] = (cl_function)double_set_event_callback;
	driver[CL_SLOT_RELEASE_EVENT] = driver[CL_SLOT_RETAIN_EVENT] = (cl_function)double_count;
	driver[CL_SLOT_GET_QUEUE_INFO] = driver[CL_SLOT_GET_DEVICE_INFO] =
		driver[CL_SLOT_GET_KERNEL_INFO] = driver[CL_SLOT_GET_EVENT_INFO] =
			driver[CL_SLOT_GET_EVENT_PROFILING_INFO] = (cl_function)double_info;
}

/* ---- the layer ---- */

static void fail(const char *what)
{
	fprintf(stderr, "layer-double: %s\n", what);
	exit(2);
}

/* As the loader does: what the layer does not have is the driver's. */
static void load_layer(const char *path)
{
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	init_layer *init = library ? (init_layer *)dlsym(library, "clInitLayer") : NULL;
	const cl_function *dispatch;
	cl_uint count;

	if (!init || init(CL_SLOT_COUNT, driver, &count, &dispatch) != CL_SUCCESS ||
		!dispatch[CL_SLOT_ND_RANGE_KERNEL])
		fail("the layer is not there, or it has no session");
	for (size_t i = 0; i < CL_SLOT_COUNT; i++)
		layered[i] = i < count && dispatch[i] ? dispatch[i] : driver[i];
}

/* ---- bursts ---- */

/* Returns what one launch took. */
static __attribute__((noinline)) double burst(const cl_function *table)
{
	cl_nd_range_kernel *volatile launch = (cl_nd_range_kernel *)table[CL_SLOT_ND_RANGE_KERNEL];
	const size_t global[3] = {4096, 1, 1};
	uint64_t begin_ns = now_ns();

	queued_ns = begin_ns;
	for (int i = 0; i < BURST; i++)
		launch(a_queue, a_kernel, 1, NULL, global, NULL, 0, NULL, NULL);
	return (double)(now_ns() - begin_ns) / BURST;
}

static int compare(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

static void run_bursts(size_t count, const char *way)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	static double direct[MAX_BURSTS], layer[MAX_BURSTS];

	for (size_t i = 0; i < count; i++) {
		direct[i] = burst(way && strcmp(way, "layer") == 0 ? layered : driver);
		run_device();
		layer[i] = burst(way && strcmp(way, "direct") == 0 ? driver : layered);
		run_device();
		if (!way)
			nanosleep(&pause, NULL);
	}
	printf("{\"launches\": %zu, \"direct_ns\": %.2f, \"layer_ns\": %.2f}\n", count * BURST,
		median(direct, count), median(layer, count));
}

static __attribute__((noinline)) void run_deep(int depth, size_t count, const char *way)
{
	if (depth)
		run_deep(depth - 1, count, way);
	else
		run_bursts(count, way);
	__asm__ volatile("");
}

int main(int count, char **arguments)
{
	size_t bursts = count > 2 ? strtoul(arguments[2], NULL, 10) : 0;

	if (!bursts || bursts > MAX_BURSTS)
		fail("closed|recorded BURSTS [direct|layer]");
	make_driver();
	if (strcmp(arguments[1], "closed") == 0 && !make_closed_gate(getenv("SONDE_SESSION")))
		fail("cannot make a gate in the folder that $SONDE_SESSION names");
	load_layer(getenv("OPENCL_LAYERS"));
	run_deep(DEPTH, bursts, count > 3 ? arguments[3] : NULL);
	return 0;
}
