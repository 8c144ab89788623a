/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of the OpenCL 3.0 ABI as the layer needs, from the specifications of the API, of the
 * installable client driver (places in the dispatch table) and of its layers: no header or library
 * of OpenCL is needed to build or to load sonde. tests/unit/test-opencl-abi.c compares it with the
 * real headers where they are installed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef cl_ulong cl_bitfield;
typedef void *cl_handle; /* queues, kernels, events, memory objects, devices … */
typedef void (*cl_function)(void);
typedef void cl_event_callback(cl_handle event, cl_int status, void *context);

/* Places in the dispatch table. */
enum {
	CL_SLOT_GET_DEVICE_INFO = 3,
	CL_SLOT_CREATE_QUEUE = 9,
	CL_SLOT_RELEASE_QUEUE = 11,
	CL_SLOT_GET_QUEUE_INFO = 12,
	CL_SLOT_GET_IMAGE_INFO = 21,
	CL_SLOT_CREATE_KERNEL = 34,
	CL_SLOT_CREATE_KERNELS_IN_PROGRAM = 35,
	CL_SLOT_GET_KERNEL_INFO = 39,
	CL_SLOT_WAIT_FOR_EVENTS = 41,
	CL_SLOT_GET_EVENT_INFO = 42,
	CL_SLOT_RETAIN_EVENT = 43,
	CL_SLOT_RELEASE_EVENT = 44,
	CL_SLOT_GET_EVENT_PROFILING_INFO = 45,
	CL_SLOT_FINISH = 47,
	CL_SLOT_READ_BUFFER = 48,
	CL_SLOT_WRITE_BUFFER = 49,
	CL_SLOT_COPY_BUFFER = 50,
	CL_SLOT_READ_IMAGE = 51,
	CL_SLOT_WRITE_IMAGE = 52,
	CL_SLOT_COPY_IMAGE = 53,
	CL_SLOT_COPY_IMAGE_TO_BUFFER = 54,
	CL_SLOT_COPY_BUFFER_TO_IMAGE = 55,
	CL_SLOT_MAP_BUFFER = 56,
	CL_SLOT_MAP_IMAGE = 57,
	CL_SLOT_UNMAP = 58,
	CL_SLOT_ND_RANGE_KERNEL = 59,
	CL_SLOT_TASK = 60,
	CL_SLOT_NATIVE_KERNEL = 61,
	CL_SLOT_SET_EVENT_CALLBACK = 81,
	CL_SLOT_READ_BUFFER_RECT = 86,
	CL_SLOT_WRITE_BUFFER_RECT = 87,
	CL_SLOT_COPY_BUFFER_RECT = 88,
	CL_SLOT_FILL_BUFFER = 102,
	CL_SLOT_FILL_IMAGE = 103,
	CL_SLOT_MIGRATE = 104,
	CL_SLOT_CREATE_QUEUE_WITH_PROPERTIES = 123,
	CL_SLOT_SVM_FREE = 128,
	CL_SLOT_SVM_MEMCPY = 129,
	CL_SLOT_SVM_FILL = 130,
	CL_SLOT_SVM_MAP = 131,
	CL_SLOT_SVM_UNMAP = 132,
	CL_SLOT_CLONE_KERNEL = 137,
	CL_SLOT_SVM_MIGRATE = 139,
	CL_SLOT_COUNT = 149,
};

enum {
	CL_SUCCESS = 0,
	CL_PROFILING_INFO_NOT_AVAILABLE = -7,
	CL_INVALID_VALUE = -30,

	CL_COMPLETE = 0,

	CL_DEVICE_NAME = 0x102b,
	CL_QUEUE_DEVICE = 0x1091,
	CL_QUEUE_PROPERTIES = 0x1093,
	CL_QUEUE_PROPERTIES_ARRAY = 0x1098,
	CL_IMAGE_ELEMENT_SIZE = 0x1111,
	CL_KERNEL_FUNCTION_NAME = 0x1190,
	CL_EVENT_COMMAND_QUEUE = 0x11d0,
	CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11d3,
	CL_PROFILING_COMMAND_QUEUED = 0x1280,
	CL_PROFILING_COMMAND_SUBMIT = 0x1281,
	CL_PROFILING_COMMAND_START = 0x1282,
	CL_PROFILING_COMMAND_END = 0x1283,

	CL_LAYER_API_VERSION = 0x4240,
	CL_LAYER_NAME = 0x4241,
	CL_LAYER_API_VERSION_100 = 100,
};

/* Bits of CL_QUEUE_PROPERTIES. */
#define CL_QUEUE_PROFILING_ENABLE (1ULL << 1)
#define CL_QUEUE_ON_DEVICE        (1ULL << 2)

typedef cl_int cl_get_info(
	cl_handle object, cl_uint what, size_t size, void *ret_value, size_t *ret_size);
typedef cl_int cl_change_count(cl_handle object);
typedef cl_handle cl_create_queue(
	cl_handle context, cl_handle device, cl_bitfield properties, cl_int *ret_error);
typedef cl_handle cl_create_queue_with_properties(
	cl_handle context, cl_handle device, const cl_ulong *properties, cl_int *ret_error);
typedef cl_handle cl_create_kernel(cl_handle program, const char *name, cl_int *ret_error);
typedef cl_int cl_create_kernels_in_program(
	cl_handle program, cl_uint count, cl_handle *ret_kernels, cl_uint *ret_count);
typedef cl_handle cl_clone_kernel(cl_handle kernel, cl_int *ret_error);
typedef cl_int cl_wait_for_events(cl_uint count, const cl_handle *events);
typedef cl_int cl_finish(cl_handle queue);
typedef cl_int cl_set_event_callback(
	cl_handle event, cl_int status, cl_event_callback *callback, void *context);

/* What all commands end with: the events that they wait for, and their own. */
#define CL_EVENTS cl_uint wait_count, const cl_handle *waits, cl_handle *event

typedef cl_int cl_read_buffer(cl_handle queue, cl_handle buffer, cl_uint blocking, size_t offset,
	size_t bytes, void *to, CL_EVENTS);
typedef cl_int cl_write_buffer(cl_handle queue, cl_handle buffer, cl_uint blocking, size_t offset,
	size_t bytes, const void *from, CL_EVENTS);
typedef cl_int cl_copy_buffer(cl_handle queue, cl_handle from, cl_handle to, size_t from_offset,
	size_t to_offset, size_t bytes, CL_EVENTS);
typedef cl_int cl_fill_buffer(cl_handle queue, cl_handle buffer, const void *pattern,
	size_t pattern_bytes, size_t offset, size_t bytes, CL_EVENTS);
typedef void *cl_map_buffer(cl_handle queue, cl_handle buffer, cl_uint blocking, cl_bitfield flags,
	size_t offset, size_t bytes, CL_EVENTS, cl_int *ret_error);
typedef cl_int cl_unmap(cl_handle queue, cl_handle memory, void *mapped, CL_EVENTS);
typedef cl_int cl_nd_range_kernel(cl_handle queue, cl_handle kernel, cl_uint dimensions,
	const size_t *offset, const size_t *global, const size_t *local, CL_EVENTS);
typedef cl_int cl_task(cl_handle queue, cl_handle kernel, CL_EVENTS);
typedef cl_int cl_svm_memcpy(
	cl_handle queue, cl_uint blocking, void *to, const void *from, size_t bytes, CL_EVENTS);
typedef cl_int cl_svm_fill(cl_handle queue, void *to, const void *pattern, size_t pattern_bytes,
	size_t bytes, CL_EVENTS);
typedef cl_int cl_svm_map(
	cl_handle queue, cl_uint blocking, cl_bitfield flags, void *at, size_t bytes, CL_EVENTS);
typedef cl_int cl_svm_unmap(cl_handle queue, void *at, CL_EVENTS);
typedef void cl_svm_free_callback(cl_handle queue, cl_uint count, void *pointers[], void *context);
typedef cl_int cl_svm_free(cl_handle queue, cl_uint count, void *pointers[],
	cl_svm_free_callback *callback, void *context, CL_EVENTS);
typedef cl_int cl_svm_migrate(cl_handle queue, cl_uint count, const void **pointers,
	const size_t *sizes, cl_bitfield flags, CL_EVENTS);
typedef cl_int cl_migrate(
	cl_handle queue, cl_uint count, const cl_handle *memories, cl_bitfield flags, CL_EVENTS);
typedef void cl_native_function(void *arguments);
typedef cl_int cl_native_kernel(cl_handle queue, cl_native_function *function, void *arguments,
	size_t bytes, cl_uint count, const cl_handle *memories, const void **places, CL_EVENTS);

/* Regions and origins are of three numbers; a pitch is in bytes. */
typedef cl_int cl_read_buffer_rect(cl_handle queue, cl_handle buffer, cl_uint blocking,
	const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
	size_t buffer_row, size_t buffer_slice, size_t host_row, size_t host_slice, void *to,
	CL_EVENTS);
typedef cl_int cl_write_buffer_rect(cl_handle queue, cl_handle buffer, cl_uint blocking,
	const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
	size_t buffer_row, size_t buffer_slice, size_t host_row, size_t host_slice,
	const void *from, CL_EVENTS);
typedef cl_int cl_copy_buffer_rect(cl_handle queue, cl_handle from, cl_handle to,
	const size_t *from_origin, const size_t *to_origin, const size_t *region, size_t from_row,
	size_t from_slice, size_t to_row, size_t to_slice, CL_EVENTS);
typedef cl_int cl_read_image(cl_handle queue, cl_handle image, cl_uint blocking,
	const size_t *origin, const size_t *region, size_t row, size_t slice, void *to, CL_EVENTS);
typedef cl_int cl_write_image(cl_handle queue, cl_handle image, cl_uint blocking,
	const size_t *origin, const size_t *region, size_t row, size_t slice, const void *from,
	CL_EVENTS);
typedef cl_int cl_fill_image(cl_handle queue, cl_handle image, const void *color,
	const size_t *origin, const size_t *region, CL_EVENTS);
typedef cl_int cl_copy_image(cl_handle queue, cl_handle from, cl_handle to,
	const size_t *from_origin, const size_t *to_origin, const size_t *region, CL_EVENTS);
typedef cl_int cl_copy_image_to_buffer(cl_handle queue, cl_handle from, cl_handle to,
	const size_t *origin, const size_t *region, size_t offset, CL_EVENTS);
typedef cl_int cl_copy_buffer_to_image(cl_handle queue, cl_handle from, cl_handle to, size_t offset,
	const size_t *origin, const size_t *region, CL_EVENTS);
typedef void *cl_map_image(cl_handle queue, cl_handle image, cl_uint blocking, cl_bitfield flags,
	const size_t *origin, const size_t *region, size_t *ret_row, size_t *ret_slice, CL_EVENTS,
	cl_int *ret_error);
