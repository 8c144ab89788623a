/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL layer: the loader puts it between the program and the driver ($OPENCL_LAYERS). Every
 * call of the program reaches the driver exactly once and gives the driver's result; queues tell
 * times although the program did not ask for it, and the program does not see that.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "inject/inject.h"
#include "inject/opencl/launch.h"
#include "inject/opencl/memory.h"
#include "inject/opencl/runtime.h"

#define EXPORTED __attribute__((visibility("default")))

/* The loader's call, newer ones' with one argument more. */
EXPORTED cl_int clGetLayerInfo(cl_uint what, size_t size, void *ret_value, size_t *ret_size);
EXPORTED cl_int clInitLayer(cl_uint count, const cl_function *target, cl_uint *ret_count,
	const cl_function **ret_dispatch);
EXPORTED cl_int clInitLayerWithProperties(cl_uint count, const cl_function *target,
	cl_uint *ret_count, const cl_function **ret_dispatch, const void *properties);
EXPORTED cl_int clDeinitLayer(void);

/* ---- queues: they tell times, unseen ---- */

static cl_handle layer_create_queue(
	cl_handle context, cl_handle device, cl_bitfield properties, cl_int *ret_error)
{
	cl_create_queue *next = NEXT(cl_create_queue, CL_SLOT_CREATE_QUEUE);
	bool for_us = inject_is_timed() && !(properties & CL_QUEUE_PROFILING_ENABLE);
	cl_handle queue = next(context, device,
		for_us ? properties | CL_QUEUE_PROFILING_ENABLE : properties, ret_error);

	if (!queue && for_us) {
		for_us = false;
		queue = next(context, device, properties, ret_error);
	}
	if (queue)
		opencl_queue_created(queue, for_us, NULL);
	return queue;
}

/*
 * The program's list with profiling switched on. False when there is nothing to change, or no room,
 * or the queue is the device's own.
 */
static bool add_profiling(const cl_ulong *given, cl_ulong *ret_list)
{
	size_t count = 0, flags = SIZE_MAX;

	for (; given && given[count]; count += 2) {
		if (count + 4 >= OPENCL_MAX_PROPERTIES)
			return false;
		if (given[count] == CL_QUEUE_PROPERTIES)
			flags = count + 1;
		ret_list[count] = given[count];
		ret_list[count + 1] = given[count + 1];
	}
	if (flags == SIZE_MAX) {
		ret_list[count] = CL_QUEUE_PROPERTIES;
		flags = count + 1;
		ret_list[flags] = 0;
		count += 2;
	}
	ret_list[count] = 0;
	if (ret_list[flags] & (CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_ON_DEVICE))
		return false;
	ret_list[flags] |= CL_QUEUE_PROFILING_ENABLE;
	return true;
}

static cl_handle layer_create_queue_with_properties(
	cl_handle context, cl_handle device, const cl_ulong *properties, cl_int *ret_error)
{
	cl_create_queue_with_properties *next =
		NEXT(cl_create_queue_with_properties, CL_SLOT_CREATE_QUEUE_WITH_PROPERTIES);
	cl_ulong list[OPENCL_MAX_PROPERTIES];
	bool for_us = inject_is_timed() && add_profiling(properties, list);
	cl_handle queue = for_us ? next(context, device, list, ret_error) : NULL;

	if (!queue) {
		for_us = false;
		queue = next(context, device, properties, ret_error);
	}
	if (queue)
		opencl_queue_created(queue, for_us, properties);
	return queue;
}

/* What the program would have got without us. */
static void hide_profiling(
	const struct opencl_queue *queue, cl_uint what, size_t size, void *value, size_t *ret_size)
{
	size_t bytes = queue->property_count * sizeof(cl_ulong);

	if (what == CL_QUEUE_PROPERTIES && value && size >= sizeof(cl_bitfield)) {
		*(cl_bitfield *)value &= ~CL_QUEUE_PROFILING_ENABLE;
	} else if (what == CL_QUEUE_PROPERTIES_ARRAY) {
		if (value && size >= bytes)
			memcpy(value, queue->properties, bytes);
		if (ret_size)
			*ret_size = bytes;
	}
}

static cl_int layer_get_queue_info(
	cl_handle queue, cl_uint what, size_t size, void *value, size_t *ret_size)
{
	cl_int result =
		NEXT(cl_get_info, CL_SLOT_GET_QUEUE_INFO)(queue, what, size, value, ret_size);
	const struct opencl_queue *known;

	if (result != CL_SUCCESS ||
		(what != CL_QUEUE_PROPERTIES && what != CL_QUEUE_PROPERTIES_ARRAY))
		return result;
	known = opencl_queue(queue);
	if (known && known->is_timed_for_us)
		hide_profiling(known, what, size, value, ret_size);
	return result;
}

static cl_int layer_get_event_profiling_info(
	cl_handle event, cl_uint what, size_t size, void *value, size_t *ret_size)
{
	const struct opencl_queue *known = NULL;
	cl_handle queue = NULL;

	if (NEXT(cl_get_info, CL_SLOT_GET_EVENT_INFO)(
		    event, CL_EVENT_COMMAND_QUEUE, sizeof(cl_handle), &queue, NULL) == CL_SUCCESS)
		known = opencl_queue(queue);
	if (known && known->is_timed_for_us)
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	return NEXT(cl_get_info, CL_SLOT_GET_EVENT_PROFILING_INFO)(
		event, what, size, value, ret_size);
}

/* ---- kernels ---- */

static cl_handle layer_create_kernel(cl_handle program, const char *name, cl_int *ret_error)
{
	cl_handle kernel = NEXT(cl_create_kernel, CL_SLOT_CREATE_KERNEL)(program, name, ret_error);

	if (kernel)
		opencl_kernel_created(kernel);
	return kernel;
}

static cl_int layer_create_kernels_in_program(
	cl_handle program, cl_uint count, cl_handle *ret_kernels, cl_uint *ret_count)
{
	cl_uint made = 0;
	cl_int result = NEXT(cl_create_kernels_in_program, CL_SLOT_CREATE_KERNELS_IN_PROGRAM)(
		program, count, ret_kernels, &made);

	for (cl_uint i = 0; result == CL_SUCCESS && ret_kernels && i < made && i < count; i++)
		opencl_kernel_created(ret_kernels[i]);
	if (result == CL_SUCCESS && ret_count)
		*ret_count = made;
	return result;
}

static cl_handle layer_clone_kernel(cl_handle kernel, cl_int *ret_error)
{
	cl_handle clone = NEXT(cl_clone_kernel, CL_SLOT_CLONE_KERNEL)(kernel, ret_error);

	if (clone)
		opencl_kernel_created(clone);
	return clone;
}

/* ---- commands ---- */

/* In stacks they have the names of the calls that they stand for: local symbols, no exports. */
static cl_nd_range_kernel layer_nd_range_kernel __asm__("clEnqueueNDRangeKernel");
static cl_task layer_task __asm__("clEnqueueTask");
static cl_read_buffer layer_read_buffer __asm__("clEnqueueReadBuffer");
static cl_write_buffer layer_write_buffer __asm__("clEnqueueWriteBuffer");
static cl_copy_buffer layer_copy_buffer __asm__("clEnqueueCopyBuffer");
static cl_fill_buffer layer_fill_buffer __asm__("clEnqueueFillBuffer");
static cl_map_buffer layer_map_buffer __asm__("clEnqueueMapBuffer");
static cl_unmap layer_unmap __asm__("clEnqueueUnmapMemObject");
static cl_svm_memcpy layer_svm_memcpy __asm__("clEnqueueSVMMemcpy");
static cl_svm_fill layer_svm_fill __asm__("clEnqueueSVMMemFill");
static cl_svm_map layer_svm_map __asm__("clEnqueueSVMMap");
static cl_svm_unmap layer_svm_unmap __asm__("clEnqueueSVMUnmap");

static cl_int layer_nd_range_kernel(cl_handle queue, cl_handle kernel, cl_uint dimensions,
	const size_t *offset, const size_t *global, const size_t *local, CL_EVENTS)
{
	struct opencl_launch launch;
	cl_int result;

	if (opencl_launch_begin(&launch, queue, WIRE_DEVICE_KERNEL)) {
		launch.name = opencl_kernel_name(kernel);
		for (cl_uint i = 0; i < dimensions && i < 3; i++) {
			launch.global_size[i] = global ? global[i] : 0;
			launch.local_size[i] = local ? (uint32_t)local[i] : 0;
		}
	}
	result = NEXT(cl_nd_range_kernel, CL_SLOT_ND_RANGE_KERNEL)(queue, kernel, dimensions,
		offset, global, local, wait_count, waits, opencl_launch_event(&launch, event));
	opencl_launch_end(&launch, result, event);
	return result;
}

static cl_int layer_task(cl_handle queue, cl_handle kernel, CL_EVENTS)
{
	struct opencl_launch launch;
	cl_int result;

	if (opencl_launch_begin(&launch, queue, WIRE_DEVICE_KERNEL)) {
		launch.name = opencl_kernel_name(kernel);
		launch.global_size[0] = launch.local_size[0] = 1;
	}
	result = NEXT(cl_task, CL_SLOT_TASK)(
		queue, kernel, wait_count, waits, opencl_launch_event(&launch, event));
	opencl_launch_end(&launch, result, event);
	return result;
}

static cl_int layer_read_buffer(cl_handle queue, cl_handle buffer, cl_uint blocking, size_t offset,
	size_t bytes, void *to, CL_EVENTS)
{
	return LAUNCH(cl_read_buffer, CL_SLOT_READ_BUFFER, queue, WIRE_DEVICE_READ, bytes, blocking,
		buffer, blocking, offset, bytes, to);
}

static cl_int layer_write_buffer(cl_handle queue, cl_handle buffer, cl_uint blocking, size_t offset,
	size_t bytes, const void *from, CL_EVENTS)
{
	return LAUNCH(cl_write_buffer, CL_SLOT_WRITE_BUFFER, queue, WIRE_DEVICE_WRITE, bytes,
		blocking, buffer, blocking, offset, bytes, from);
}

static cl_int layer_copy_buffer(cl_handle queue, cl_handle from, cl_handle to, size_t from_offset,
	size_t to_offset, size_t bytes, CL_EVENTS)
{
	return LAUNCH(cl_copy_buffer, CL_SLOT_COPY_BUFFER, queue, WIRE_DEVICE_COPY, bytes, false,
		from, to, from_offset, to_offset, bytes);
}

static cl_int layer_fill_buffer(cl_handle queue, cl_handle buffer, const void *pattern,
	size_t pattern_bytes, size_t offset, size_t bytes, CL_EVENTS)
{
	return LAUNCH(cl_fill_buffer, CL_SLOT_FILL_BUFFER, queue, WIRE_DEVICE_FILL, bytes, false,
		buffer, pattern, pattern_bytes, offset, bytes);
}

static void *layer_map_buffer(cl_handle queue, cl_handle buffer, cl_uint blocking,
	cl_bitfield flags, size_t offset, size_t bytes, CL_EVENTS, cl_int *ret_error)
{
	struct opencl_launch launch;
	cl_int error = CL_SUCCESS;
	void *mapped;

	if (opencl_launch_begin(&launch, queue, WIRE_DEVICE_MAP)) {
		launch.bytes = bytes;
		launch.is_blocking = blocking;
	}
	mapped = NEXT(cl_map_buffer, CL_SLOT_MAP_BUFFER)(queue, buffer, blocking, flags, offset,
		bytes, wait_count, waits, opencl_launch_event(&launch, event), &error);
	opencl_launch_end(&launch, error, event);
	if (ret_error)
		*ret_error = error;
	return mapped;
}

static cl_int layer_unmap(cl_handle queue, cl_handle memory, void *mapped, CL_EVENTS)
{
	return LAUNCH(cl_unmap, CL_SLOT_UNMAP, queue, WIRE_DEVICE_UNMAP, 0, false, memory, mapped);
}

static cl_int layer_svm_memcpy(
	cl_handle queue, cl_uint blocking, void *to, const void *from, size_t bytes, CL_EVENTS)
{
	return LAUNCH(cl_svm_memcpy, CL_SLOT_SVM_MEMCPY, queue, WIRE_DEVICE_COPY, bytes, blocking,
		blocking, to, from, bytes);
}

static cl_int layer_svm_fill(cl_handle queue, void *to, const void *pattern, size_t pattern_bytes,
	size_t bytes, CL_EVENTS)
{
	return LAUNCH(cl_svm_fill, CL_SLOT_SVM_FILL, queue, WIRE_DEVICE_FILL, bytes, false, to,
		pattern, pattern_bytes, bytes);
}

static cl_int layer_svm_map(
	cl_handle queue, cl_uint blocking, cl_bitfield flags, void *at, size_t bytes, CL_EVENTS)
{
	return LAUNCH(cl_svm_map, CL_SLOT_SVM_MAP, queue, WIRE_DEVICE_MAP, bytes, blocking,
		blocking, flags, at, bytes);
}

static cl_int layer_svm_unmap(cl_handle queue, void *at, CL_EVENTS)
{
	return LAUNCH(cl_svm_unmap, CL_SLOT_SVM_UNMAP, queue, WIRE_DEVICE_UNMAP, 0, false, at);
}

/* ---- waits ---- */

static cl_int layer_finish(cl_handle queue)
{
	uint64_t enter_ns = inject_is_open() ? inject_now_ns() : 0;
	cl_int result = NEXT(cl_finish, CL_SLOT_FINISH)(queue);

	if (enter_ns) {
		opencl_waited(WIRE_DEVICE_FINISH, queue, enter_ns);
		opencl_launch_sweep();
	}
	return result;
}

static cl_int layer_wait_for_events(cl_uint count, const cl_handle *events)
{
	uint64_t enter_ns = inject_is_open() ? inject_now_ns() : 0;
	cl_int result = NEXT(cl_wait_for_events, CL_SLOT_WAIT_FOR_EVENTS)(count, events);

	if (enter_ns) {
		opencl_waited(WIRE_DEVICE_WAIT, NULL, enter_ns);
		opencl_launch_sweep();
	}
	return result;
}

/* ---- the loader ---- */

static const cl_function layer[CL_SLOT_COUNT] = {
	[CL_SLOT_CREATE_QUEUE] = (cl_function)layer_create_queue,
	[CL_SLOT_GET_QUEUE_INFO] = (cl_function)layer_get_queue_info,
	[CL_SLOT_CREATE_KERNEL] = (cl_function)layer_create_kernel,
	[CL_SLOT_CREATE_KERNELS_IN_PROGRAM] = (cl_function)layer_create_kernels_in_program,
	[CL_SLOT_WAIT_FOR_EVENTS] = (cl_function)layer_wait_for_events,
	[CL_SLOT_GET_EVENT_PROFILING_INFO] = (cl_function)layer_get_event_profiling_info,
	[CL_SLOT_FINISH] = (cl_function)layer_finish,
	[CL_SLOT_READ_BUFFER] = (cl_function)layer_read_buffer,
	[CL_SLOT_WRITE_BUFFER] = (cl_function)layer_write_buffer,
	[CL_SLOT_COPY_BUFFER] = (cl_function)layer_copy_buffer,
	[CL_SLOT_READ_IMAGE] = (cl_function)opencl_read_image,
	[CL_SLOT_WRITE_IMAGE] = (cl_function)opencl_write_image,
	[CL_SLOT_COPY_IMAGE] = (cl_function)opencl_copy_image,
	[CL_SLOT_COPY_IMAGE_TO_BUFFER] = (cl_function)opencl_copy_image_to_buffer,
	[CL_SLOT_COPY_BUFFER_TO_IMAGE] = (cl_function)opencl_copy_buffer_to_image,
	[CL_SLOT_MAP_BUFFER] = (cl_function)layer_map_buffer,
	[CL_SLOT_MAP_IMAGE] = (cl_function)opencl_map_image,
	[CL_SLOT_UNMAP] = (cl_function)layer_unmap,
	[CL_SLOT_ND_RANGE_KERNEL] = (cl_function)layer_nd_range_kernel,
	[CL_SLOT_TASK] = (cl_function)layer_task,
	[CL_SLOT_NATIVE_KERNEL] = (cl_function)opencl_native_kernel,
	[CL_SLOT_READ_BUFFER_RECT] = (cl_function)opencl_read_buffer_rect,
	[CL_SLOT_WRITE_BUFFER_RECT] = (cl_function)opencl_write_buffer_rect,
	[CL_SLOT_COPY_BUFFER_RECT] = (cl_function)opencl_copy_buffer_rect,
	[CL_SLOT_FILL_BUFFER] = (cl_function)layer_fill_buffer,
	[CL_SLOT_FILL_IMAGE] = (cl_function)opencl_fill_image,
	[CL_SLOT_MIGRATE] = (cl_function)opencl_migrate,
	[CL_SLOT_CREATE_QUEUE_WITH_PROPERTIES] = (cl_function)layer_create_queue_with_properties,
	[CL_SLOT_SVM_FREE] = (cl_function)opencl_svm_free,
	[CL_SLOT_SVM_MEMCPY] = (cl_function)layer_svm_memcpy,
	[CL_SLOT_SVM_FILL] = (cl_function)layer_svm_fill,
	[CL_SLOT_SVM_MAP] = (cl_function)layer_svm_map,
	[CL_SLOT_SVM_UNMAP] = (cl_function)layer_svm_unmap,
	[CL_SLOT_CLONE_KERNEL] = (cl_function)layer_clone_kernel,
	[CL_SLOT_SVM_MIGRATE] = (cl_function)opencl_svm_migrate,
};

/* Without a session the program's calls go straight to the driver. */
static const cl_function no_layer[CL_SLOT_COUNT];
/* The driver's table may be shorter than ours; the loader may not keep it. */
static cl_function next_table[CL_SLOT_COUNT];

static cl_int answer(
	const void *value, size_t bytes, size_t size, void *ret_value, size_t *ret_size)
{
	if (ret_value && size < bytes)
		return CL_INVALID_VALUE;
	if (ret_value)
		memcpy(ret_value, value, bytes);
	if (ret_size)
		*ret_size = bytes;
	return CL_SUCCESS;
}

cl_int clGetLayerInfo(cl_uint what, size_t size, void *ret_value, size_t *ret_size)
{
	static const cl_uint version = CL_LAYER_API_VERSION_100;
	static const char name[] = "sonde";

	switch (what) {
	case CL_LAYER_API_VERSION:
		return answer(&version, sizeof(version), size, ret_value, ret_size);
	case CL_LAYER_NAME:
		return answer(name, sizeof(name), size, ret_value, ret_size);
	default:
		return CL_INVALID_VALUE;
	}
}

/* Its code stays in the process, as ours: we call it after the program has unloaded it. */
static void keep_library(const void *address)
{
	Dl_info library;

	if (dladdr(address, &library) && library.dli_fname)
		dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

cl_int clInitLayer(cl_uint count, const cl_function *target, cl_uint *ret_count,
	const cl_function **ret_dispatch)
{
	int saved_errno = errno;
	bool fits = count > CL_SLOT_FILL_BUFFER;

	if (!target || !ret_count || !ret_dispatch)
		return CL_INVALID_VALUE;
	*ret_count = count < CL_SLOT_COUNT ? count : CL_SLOT_COUNT;
	*ret_dispatch = no_layer;
	if (!fits || opencl_next || !runtime_enter(&opencl_runtime))
		return CL_SUCCESS;
	memcpy(next_table, target, *ret_count * sizeof(*target));
	opencl_next = next_table;
	/* The loader's, or another layer's, behind which the loader is. */
	keep_library((const void *)target[CL_SLOT_FINISH]);
	keep_library(__builtin_return_address(0));
	errno = saved_errno;
	*ret_dispatch = layer;
	return CL_SUCCESS;
}

cl_int clInitLayerWithProperties(cl_uint count, const cl_function *target, cl_uint *ret_count,
	const cl_function **ret_dispatch, const void *properties)
{
	return clInitLayer(count, target, ret_count, ret_dispatch);
}

cl_int clDeinitLayer(void)
{
	opencl_launch_sweep();
	return CL_SUCCESS;
}

/* The loader has put the layer in place already: there is nothing to load. */
static bool start(void)
{
	return true;
}

const struct runtime opencl_runtime = {
	.start = start,
	.stop = opencl_launch_finish,
};
