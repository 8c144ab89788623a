/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for an OpenCL driver, a test double: a platform "double" with one device, whose
 * commands do nothing and take a microsecond each. What goes wrong in it is said by letters in
 * $OPENCL_DOUBLE, each of which real drivers do:
 *   q  queues cannot tell times         c  no callbacks for events     t  events tell no times
 *   f  every other command fails        e  every other event ends with an error
 *   z  all times of events are 0        b  times of events run backwards
 *   s  callbacks come on threads of their own, where telling times takes 10 ms
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "opencl_headers.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name);
EXPORTED cl_int clIcdGetPlatformIDsKHR(cl_uint count, cl_platform_id *ids, cl_uint *ret_count);
EXPORTED cl_int clGetPlatformInfo(
	cl_platform_id id, cl_platform_info what, size_t size, void *value, size_t *ret_size);

static cl_icd_dispatch dispatch;

/* Every handle is one of these: the loader looks at its first word. */
struct object {
	cl_icd_dispatch *dispatch;
	atomic_int count;
	struct object *queue; /* of events */
	cl_ulong start_ns;
	cl_int status;
	bool is_timed;
};

static struct object the_platform = {.dispatch = &dispatch};
static struct object the_device = {.dispatch = &dispatch};
static atomic_uint commands;

static bool goes_wrong(char how)
{
	const char *faults = getenv("OPENCL_DOUBLE");

	return faults && strchr(faults, how);
}

static void *new_object(cl_int *ret_error)
{
	struct object *object = calloc(1, sizeof(*object));

	if (ret_error)
		*ret_error = object ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
	if (object)
		*object = (struct object){.dispatch = &dispatch, .count = 1};
	return object;
}

static cl_int answer(const void *from, size_t bytes, size_t size, void *value, size_t *ret_size)
{
	if (value && size < bytes)
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, from, bytes);
	if (ret_size)
		*ret_size = bytes;
	return CL_SUCCESS;
}

static cl_int answer_text(const char *text, size_t size, void *value, size_t *ret_size)
{
	return answer(text, strlen(text) + 1, size, value, ret_size);
}

/* ---- the platform ---- */

cl_int clIcdGetPlatformIDsKHR(cl_uint count, cl_platform_id *ids, cl_uint *ret_count)
{
	if (ids && count)
		ids[0] = (cl_platform_id)&the_platform;
	if (ret_count)
		*ret_count = 1;
	return CL_SUCCESS;
}

cl_int clGetPlatformInfo(
	cl_platform_id id, cl_platform_info what, size_t size, void *value, size_t *ret_size)
{
	switch (what) {
	case CL_PLATFORM_EXTENSIONS:
		return answer_text("cl_khr_icd", size, value, ret_size);
	case CL_PLATFORM_VERSION:
		return answer_text("OpenCL 3.0 double", size, value, ret_size);
	default:
		return answer_text("double", size, value, ret_size);
	}
}

void *clGetExtensionFunctionAddress(const char *name)
{
	if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
		return (void *)clIcdGetPlatformIDsKHR;
	return strcmp(name, "clGetPlatformInfo") == 0 ? (void *)clGetPlatformInfo : NULL;
}

static cl_int get_devices(cl_platform_id platform, cl_device_type type, cl_uint count,
	cl_device_id *devices, cl_uint *ret_count)
{
	if (devices && count)
		devices[0] = (cl_device_id)&the_device;
	if (ret_count)
		*ret_count = 1;
	return CL_SUCCESS;
}

static cl_int device_info(
	cl_device_id device, cl_device_info what, size_t size, void *value, size_t *ret_size)
{
	return answer_text("double device", size, value, ret_size);
}

static cl_context create_context(const cl_context_properties *properties, cl_uint count,
	const cl_device_id *devices,
	void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *context,
	cl_int *ret_error)
{
	return new_object(ret_error);
}

/* ---- counted objects ---- */

static cl_int retain(struct object *object)
{
	object->count++;
	return CL_SUCCESS;
}

static cl_int release(struct object *object)
{
	if (--object->count == 0)
		free(object);
	return CL_SUCCESS;
}

static cl_program create_program(cl_context context, cl_uint count, const char **texts,
	const size_t *lengths, cl_int *ret_error)
{
	return new_object(ret_error);
}

static cl_int build_program(cl_program program, cl_uint count, const cl_device_id *devices,
	const char *options, void(CL_CALLBACK *notify)(cl_program, void *), void *context)
{
	return CL_SUCCESS;
}

static cl_kernel create_kernel(cl_program program, const char *name, cl_int *ret_error)
{
	return new_object(ret_error);
}

static cl_int kernel_info(
	cl_kernel kernel, cl_kernel_info what, size_t size, void *value, size_t *ret_size)
{
	return answer_text("nothing", size, value, ret_size);
}

/* ---- queues ---- */

static cl_command_queue make_queue(bool is_timed, cl_int *ret_error)
{
	struct object *queue;

	if (is_timed && goes_wrong('q')) {
		if (ret_error)
			*ret_error = CL_INVALID_QUEUE_PROPERTIES;
		return NULL;
	}
	queue = new_object(ret_error);
	if (queue)
		queue->is_timed = is_timed;
	return (cl_command_queue)queue;
}

static cl_command_queue create_queue(cl_context context, cl_device_id device,
	cl_command_queue_properties properties, cl_int *ret_error)
{
	return make_queue(properties & CL_QUEUE_PROFILING_ENABLE, ret_error);
}

static cl_command_queue create_queue_with_properties(cl_context context, cl_device_id device,
	const cl_queue_properties *properties, cl_int *ret_error)
{
	return make_queue(properties && properties[0] == CL_QUEUE_PROPERTIES &&
				  properties[1] & CL_QUEUE_PROFILING_ENABLE,
		ret_error);
}

static cl_int queue_info(cl_command_queue queue, cl_command_queue_info what, size_t size,
	void *value, size_t *ret_size)
{
	const struct object *object = (struct object *)queue;
	cl_command_queue_properties properties = object->is_timed ? CL_QUEUE_PROFILING_ENABLE : 0;
	cl_device_id device = (cl_device_id)&the_device;

	if (what == CL_QUEUE_PROPERTIES)
		return answer(&properties, sizeof(properties), size, value, ret_size);
	if (what == CL_QUEUE_DEVICE)
		return answer(&device, sizeof(device), size, value, ret_size);
	return CL_INVALID_VALUE;
}

static cl_int finish(cl_command_queue queue)
{
	return CL_SUCCESS;
}

/* ---- commands and their events ---- */

static cl_int nd_range_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
	const size_t *offset, const size_t *global, const size_t *local, cl_uint wait_count,
	const cl_event *waits, cl_event *event)
{
	bool is_odd = commands++ % 2;
	struct object *made;
	struct timespec now;

	if (is_odd && goes_wrong('f'))
		return CL_OUT_OF_RESOURCES;
	if (!event)
		return CL_SUCCESS;
	made = new_object(NULL);
	if (!made)
		return CL_OUT_OF_HOST_MEMORY;
	clock_gettime(CLOCK_MONOTONIC, &now);
	made->queue = (struct object *)queue;
	made->is_timed = made->queue->is_timed; /* it may outlive its queue */
	made->start_ns = (cl_ulong)now.tv_sec * 1000000000 + (cl_ulong)now.tv_nsec;
	made->status = is_odd && goes_wrong('e') ? CL_OUT_OF_RESOURCES : CL_COMPLETE;
	*event = (cl_event)made;
	return CL_SUCCESS;
}

static cl_int event_info(
	cl_event event, cl_event_info what, size_t size, void *value, size_t *ret_size)
{
	const struct object *object = (struct object *)event;

	if (what == CL_EVENT_COMMAND_QUEUE)
		return answer(&object->queue, sizeof(object->queue), size, value, ret_size);
	return answer(&object->status, sizeof(object->status), size, value, ret_size);
}

/* An event whose callback a thread of its own calls. */
struct late_callback {
	cl_event event;
	void(CL_CALLBACK *callback)(cl_event, cl_int, void *);
	void *context;
};

static __thread bool is_callback_thread;
static atomic_uint slow_callbacks; /* that have asked for times */

static void take_long(void)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	slow_callbacks++;
	nanosleep(&pause, NULL);
}

static void *call_late(void *context)
{
	struct late_callback late = *(struct late_callback *)context;

	free(context);
	is_callback_thread = true;
	late.callback(late.event, ((struct object *)late.event)->status, late.context);
	return NULL;
}

/* Returns when the callback asks for times. */
static cl_int call_from_a_thread(struct late_callback *late)
{
	unsigned before = slow_callbacks;
	pthread_t thread;

	if (!late || pthread_create(&thread, NULL, call_late, late))
		return CL_OUT_OF_HOST_MEMORY;
	pthread_detach(thread);
	while (slow_callbacks == before)
		sched_yield();
	return CL_SUCCESS;
}

static cl_int profiling_info(
	cl_event event, cl_profiling_info what, size_t size, void *value, size_t *ret_size)
{
	const struct object *object = (struct object *)event;
	cl_ulong steps = what - CL_PROFILING_COMMAND_QUEUED;
	cl_ulong time_ns = object->start_ns + 500 * steps;

	if (!object->is_timed || goes_wrong('t'))
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	if (is_callback_thread && what == CL_PROFILING_COMMAND_QUEUED)
		take_long();
	if (goes_wrong('z'))
		time_ns = 0;
	if (goes_wrong('b'))
		time_ns = object->start_ns - 500 * steps;
	return answer(&time_ns, sizeof(time_ns), size, value, ret_size);
}

static cl_int set_callback(cl_event event, cl_int status,
	void(CL_CALLBACK *callback)(cl_event, cl_int, void *), void *context)
{
	if (goes_wrong('c'))
		return CL_OUT_OF_HOST_MEMORY;
	if (goes_wrong('s')) {
		struct late_callback *late = malloc(sizeof(*late));

		if (late)
			*late = (struct late_callback){event, callback, context};
		return call_from_a_thread(late);
	}
	callback(event, ((struct object *)event)->status, context);
	return CL_SUCCESS;
}

static cl_int wait_for_events(cl_uint count, const cl_event *events)
{
	return CL_SUCCESS;
}

static cl_icd_dispatch dispatch = {
	.clGetPlatformInfo = clGetPlatformInfo,
	.clGetDeviceIDs = get_devices,
	.clGetDeviceInfo = device_info,
	.clCreateContext = create_context,
	.clReleaseContext = (cl_api_clReleaseContext)release,
	.clCreateCommandQueue = create_queue,
	.clCreateCommandQueueWithProperties = create_queue_with_properties,
	.clReleaseCommandQueue = (cl_api_clReleaseCommandQueue)release,
	.clGetCommandQueueInfo = queue_info,
	.clFinish = finish,
	.clCreateProgramWithSource = create_program,
	.clBuildProgram = build_program,
	.clReleaseProgram = (cl_api_clReleaseProgram)release,
	.clCreateKernel = create_kernel,
	.clGetKernelInfo = kernel_info,
	.clReleaseKernel = (cl_api_clReleaseKernel)release,
	.clEnqueueNDRangeKernel = nd_range_kernel,
	.clRetainEvent = (cl_api_clRetainEvent)retain,
	.clReleaseEvent = (cl_api_clReleaseEvent)release,
	.clGetEventInfo = event_info,
	.clGetEventProfilingInfo = profiling_info,
	.clSetEventCallback = set_callback,
	.clWaitForEvents = wait_for_events,
};
