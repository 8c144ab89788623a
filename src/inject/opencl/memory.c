/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/opencl/memory.h"

#include "inject/opencl/launch.h"

/* A wrong call has wrong arguments: the driver says so, and nothing here follows them blindly. */
static uint64_t volume(const size_t *region)
{
	return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

/* 0 when the driver does not tell. */
static uint64_t image_bytes(cl_handle image, const size_t *region)
{
	size_t element_bytes = 0;

	if (!image || NEXT(cl_get_info, CL_SLOT_GET_IMAGE_INFO)(image, CL_IMAGE_ELEMENT_SIZE,
			      sizeof(element_bytes), &element_bytes, NULL) != CL_SUCCESS)
		return 0;
	return volume(region) * element_bytes;
}

/* ---- rectangles of buffers: regions are in bytes ---- */

cl_int opencl_read_buffer_rect(cl_handle queue, cl_handle buffer, cl_uint blocking,
	const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
	size_t buffer_row, size_t buffer_slice, size_t host_row, size_t host_slice, void *to,
	CL_EVENTS)
{
	return LAUNCH(cl_read_buffer_rect, CL_SLOT_READ_BUFFER_RECT, queue, WIRE_DEVICE_READ,
		volume(region), blocking, buffer, blocking, buffer_origin, host_origin, region,
		buffer_row, buffer_slice, host_row, host_slice, to);
}

cl_int opencl_write_buffer_rect(cl_handle queue, cl_handle buffer, cl_uint blocking,
	const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
	size_t buffer_row, size_t buffer_slice, size_t host_row, size_t host_slice,
	const void *from, CL_EVENTS)
{
	return LAUNCH(cl_write_buffer_rect, CL_SLOT_WRITE_BUFFER_RECT, queue, WIRE_DEVICE_WRITE,
		volume(region), blocking, buffer, blocking, buffer_origin, host_origin, region,
		buffer_row, buffer_slice, host_row, host_slice, from);
}

cl_int opencl_copy_buffer_rect(cl_handle queue, cl_handle from, cl_handle to,
	const size_t *from_origin, const size_t *to_origin, const size_t *region, size_t from_row,
	size_t from_slice, size_t to_row, size_t to_slice, CL_EVENTS)
{
	return LAUNCH(cl_copy_buffer_rect, CL_SLOT_COPY_BUFFER_RECT, queue, WIRE_DEVICE_COPY,
		volume(region), false, from, to, from_origin, to_origin, region, from_row,
		from_slice, to_row, to_slice);
}

/* ---- images: regions are in elements ---- */

cl_int opencl_read_image(cl_handle queue, cl_handle image, cl_uint blocking, const size_t *origin,
	const size_t *region, size_t row, size_t slice, void *to, CL_EVENTS)
{
	return LAUNCH(cl_read_image, CL_SLOT_READ_IMAGE, queue, WIRE_DEVICE_READ,
		image_bytes(image, region), blocking, image, blocking, origin, region, row, slice,
		to);
}

cl_int opencl_write_image(cl_handle queue, cl_handle image, cl_uint blocking, const size_t *origin,
	const size_t *region, size_t row, size_t slice, const void *from, CL_EVENTS)
{
	return LAUNCH(cl_write_image, CL_SLOT_WRITE_IMAGE, queue, WIRE_DEVICE_WRITE,
		image_bytes(image, region), blocking, image, blocking, origin, region, row, slice,
		from);
}

cl_int opencl_fill_image(cl_handle queue, cl_handle image, const void *color, const size_t *origin,
	const size_t *region, CL_EVENTS)
{
	return LAUNCH(cl_fill_image, CL_SLOT_FILL_IMAGE, queue, WIRE_DEVICE_FILL,
		image_bytes(image, region), false, image, color, origin, region);
}

cl_int opencl_copy_image(cl_handle queue, cl_handle from, cl_handle to, const size_t *from_origin,
	const size_t *to_origin, const size_t *region, CL_EVENTS)
{
	return LAUNCH(cl_copy_image, CL_SLOT_COPY_IMAGE, queue, WIRE_DEVICE_COPY,
		image_bytes(from, region), false, from, to, from_origin, to_origin, region);
}

cl_int opencl_copy_image_to_buffer(cl_handle queue, cl_handle from, cl_handle to,
	const size_t *origin, const size_t *region, size_t offset, CL_EVENTS)
{
	return LAUNCH(cl_copy_image_to_buffer, CL_SLOT_COPY_IMAGE_TO_BUFFER, queue,
		WIRE_DEVICE_COPY, image_bytes(from, region), false, from, to, origin, region,
		offset);
}

cl_int opencl_copy_buffer_to_image(cl_handle queue, cl_handle from, cl_handle to, size_t offset,
	const size_t *origin, const size_t *region, CL_EVENTS)
{
	return LAUNCH(cl_copy_buffer_to_image, CL_SLOT_COPY_BUFFER_TO_IMAGE, queue,
		WIRE_DEVICE_COPY, image_bytes(to, region), false, from, to, offset, origin, region);
}

void *opencl_map_image(cl_handle queue, cl_handle image, cl_uint blocking, cl_bitfield flags,
	const size_t *origin, const size_t *region, size_t *ret_row, size_t *ret_slice, CL_EVENTS,
	cl_int *ret_error)
{
	struct opencl_launch launch;
	cl_int error = CL_SUCCESS;
	void *mapped;

	if (opencl_launch_begin(&launch, queue, WIRE_DEVICE_MAP)) {
		launch.bytes = image_bytes(image, region);
		launch.is_blocking = blocking;
	}
	mapped = NEXT(cl_map_image, CL_SLOT_MAP_IMAGE)(queue, image, blocking, flags, origin,
		region, ret_row, ret_slice, wait_count, waits, opencl_launch_event(&launch, event),
		&error);
	opencl_launch_end(&launch, error, event);
	if (ret_error)
		*ret_error = error;
	return mapped;
}

/* ---- where memory is ---- */

cl_int opencl_migrate(
	cl_handle queue, cl_uint count, const cl_handle *memories, cl_bitfield flags, CL_EVENTS)
{
	return LAUNCH(cl_migrate, CL_SLOT_MIGRATE, queue, WIRE_DEVICE_MIGRATE, 0, false, count,
		memories, flags);
}

/* A size of 0 is a whole allocation, of which we know nothing. */
static uint64_t sum(cl_uint count, const size_t *sizes)
{
	uint64_t bytes = 0;

	for (cl_uint i = 0; sizes && i < count; i++)
		bytes += sizes[i];
	return bytes;
}

cl_int opencl_svm_migrate(cl_handle queue, cl_uint count, const void **pointers,
	const size_t *sizes, cl_bitfield flags, CL_EVENTS)
{
	return LAUNCH(cl_svm_migrate, CL_SLOT_SVM_MIGRATE, queue, WIRE_DEVICE_MIGRATE,
		sum(count, sizes), false, count, pointers, sizes, flags);
}

cl_int opencl_svm_free(cl_handle queue, cl_uint count, void *pointers[],
	cl_svm_free_callback *callback, void *context, CL_EVENTS)
{
	return LAUNCH(cl_svm_free, CL_SLOT_SVM_FREE, queue, WIRE_DEVICE_FREE, 0, false, count,
		pointers, callback, context);
}

/* ---- functions of the program, run by a queue ---- */

cl_int opencl_native_kernel(cl_handle queue, cl_native_function *function, void *arguments,
	size_t bytes, cl_uint count, const cl_handle *memories, const void **places, CL_EVENTS)
{
	struct opencl_launch launch;
	cl_int result;

	if (opencl_launch_begin(&launch, queue, WIRE_DEVICE_KERNEL)) {
		launch.name = opencl_name("[native kernel]");
		launch.global_size[0] = launch.local_size[0] = 1;
	}
	result = NEXT(cl_native_kernel, CL_SLOT_NATIVE_KERNEL)(queue, function, arguments, bytes,
		count, memories, places, wait_count, waits, opencl_launch_event(&launch, event));
	opencl_launch_end(&launch, result, event);
	return result;
}
