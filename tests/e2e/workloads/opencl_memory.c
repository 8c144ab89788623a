/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opencl_memory: every command that moves memory, once each, with images, rectangles and shared
 * memory, and a native kernel; prints what came out, which is known. Ends with 0 when all is right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl_headers.h"

#define SIDE  16 /* of images: pixels of 4 bytes */
#define BYTES (SIDE * SIDE * 4)

static cl_context context;
static cl_command_queue queue;
static const size_t origin[3] = {0}, pixels[3] = {SIDE, SIDE, 1}, rows[3] = {SIDE * 4, SIDE, 1};

static void check(cl_int error, const char *what)
{
	if (error == CL_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, error);
	exit(3);
}

static void set_up(void)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_int error;

	check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	check(error, "clCreateContext");
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
	check(error, "clCreateCommandQueueWithProperties");
}

static cl_mem make_buffer(void)
{
	cl_int error;
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &error);

	check(error, "clCreateBuffer");
	return buffer;
}

static cl_mem make_image(void)
{
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	const cl_image_desc description = {
		.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = SIDE, .image_height = SIDE};
	cl_int error;
	cl_mem image =
		clCreateImage(context, CL_MEM_READ_WRITE, &format, &description, NULL, &error);

	check(error, "clCreateImage");
	return image;
}

static void print_sum(const char *what, const unsigned char *data)
{
	unsigned sum = 0;

	for (int i = 0; i < BYTES; i++)
		sum += data[i];
	printf("%s %u\n", what, sum);
}

static void use_rectangles(cl_mem from, cl_mem to)
{
	unsigned char data[BYTES];

	memset(data, 3, sizeof(data));
	check(clEnqueueWriteBufferRect(
		      queue, from, CL_TRUE, origin, origin, rows, 0, 0, 0, 0, data, 0, NULL, NULL),
		"clEnqueueWriteBufferRect");
	check(clEnqueueCopyBufferRect(
		      queue, from, to, origin, origin, rows, 0, 0, 0, 0, 0, NULL, NULL),
		"clEnqueueCopyBufferRect");
	memset(data, 0, sizeof(data));
	check(clEnqueueReadBufferRect(
		      queue, to, CL_TRUE, origin, origin, rows, 0, 0, 0, 0, data, 0, NULL, NULL),
		"clEnqueueReadBufferRect");
	print_sum("rectangles", data);
}

static void use_images(cl_mem buffer)
{
	static const cl_uint color[4] = {1, 2, 3, 4};
	cl_mem image = make_image(), other = make_image();
	unsigned char data[BYTES], *mapped;
	size_t row_bytes;
	cl_int error;

	memset(data, 5, sizeof(data));
	check(clEnqueueWriteImage(queue, image, CL_TRUE, origin, pixels, 0, 0, data, 0, NULL, NULL),
		"clEnqueueWriteImage");
	check(clEnqueueCopyImage(queue, image, other, origin, origin, pixels, 0, NULL, NULL),
		"clEnqueueCopyImage");
	check(clEnqueueFillImage(queue, image, color, origin, pixels, 0, NULL, NULL),
		"clEnqueueFillImage");
	check(clEnqueueCopyImageToBuffer(queue, image, buffer, origin, pixels, 0, 0, NULL, NULL),
		"clEnqueueCopyImageToBuffer");
	memset(data, 0, sizeof(data));
	check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, data, 0, NULL, NULL),
		"clEnqueueReadBuffer");
	print_sum("filled image", data);
	check(clEnqueueReadImage(queue, other, CL_TRUE, origin, pixels, 0, 0, data, 0, NULL, NULL),
		"clEnqueueReadImage");
	print_sum("copied image", data);
	check(clEnqueueCopyBufferToImage(queue, buffer, other, 0, origin, pixels, 0, NULL, NULL),
		"clEnqueueCopyBufferToImage");
	mapped = clEnqueueMapImage(queue, other, CL_TRUE, CL_MAP_READ, origin, pixels, &row_bytes,
		NULL, 0, NULL, NULL, &error);
	check(error, "clEnqueueMapImage");
	if (row_bytes == SIDE * 4)
		print_sum("mapped image", mapped);
	check(clEnqueueUnmapMemObject(queue, other, mapped, 0, NULL, NULL),
		"clEnqueueUnmapMemObject");
	check(clFinish(queue), "clFinish");
	clReleaseMemObject(image);
	clReleaseMemObject(other);
}

static void CL_CALLBACK free_all(cl_command_queue of, cl_uint count, void *pointers[], void *done)
{
	for (cl_uint i = 0; i < count; i++)
		clSVMFree(context, pointers[i]);
	*(int *)done += (int)count;
}

static void use_shared_memory(void)
{
	static int freed;
	unsigned char data[BYTES], pattern = 7;
	void *shared = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
	const void *const_shared = shared;

	check(shared ? CL_SUCCESS : -1, "clSVMAlloc");
	check(clEnqueueSVMMemFill(queue, shared, &pattern, 1, BYTES, 0, NULL, NULL),
		"clEnqueueSVMMemFill");
	check(clEnqueueSVMMigrateMem(queue, 1, &const_shared, NULL, 0, 0, NULL, NULL),
		"clEnqueueSVMMigrateMem");
	check(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, shared, BYTES, 0, NULL, NULL),
		"clEnqueueSVMMap");
	print_sum("shared", shared);
	check(clEnqueueSVMUnmap(queue, shared, 0, NULL, NULL), "clEnqueueSVMUnmap");
	check(clEnqueueSVMMemcpy(queue, CL_TRUE, data, shared, BYTES, 0, NULL, NULL),
		"clEnqueueSVMMemcpy");
	print_sum("copied shared", data);
	check(clEnqueueSVMFree(queue, 1, &shared, free_all, &freed, 0, NULL, NULL),
		"clEnqueueSVMFree");
	check(clFinish(queue), "clFinish");
	printf("freed %d\n", freed);
}

static void CL_CALLBACK native(void *arguments)
{
	**(int **)arguments = 42;
}

static void use_native_kernel(void)
{
	int value = 0, *place = &value;

	check(clEnqueueNativeKernel(
		      queue, native, &place, sizeof(place), 0, NULL, NULL, 0, NULL, NULL),
		"clEnqueueNativeKernel");
	check(clFinish(queue), "clFinish");
	printf("native %d\n", value);
}

/* The driver's errors reach the program. */
static void use_wrongly(cl_mem buffer)
{
	static const size_t far[3] = {BYTES, BYTES, BYTES};
	unsigned char data[4];

	printf("errors %d %d %d %d\n",
		clEnqueueReadBufferRect(
			queue, buffer, CL_TRUE, far, origin, rows, 0, 0, 0, 0, data, 0, NULL, NULL),
		clEnqueueReadBuffer(queue, NULL, CL_TRUE, 0, 4, data, 0, NULL, NULL),
		clEnqueueReadImage(queue, NULL, CL_TRUE, origin, pixels, 0, 0, data, 0, NULL, NULL),
		clEnqueueMigrateMemObjects(queue, 0, NULL, 0, 0, NULL, NULL));
}

int main(void)
{
	cl_mem buffer, other;

	set_up();
	buffer = make_buffer();
	other = make_buffer();
	use_rectangles(buffer, other);
	use_images(buffer);
	use_shared_memory();
	check(clEnqueueMigrateMemObjects(queue, 1, &buffer, 0, 0, NULL, NULL),
		"clEnqueueMigrateMemObjects");
	use_native_kernel();
	use_wrongly(buffer);
	clReleaseMemObject(buffer);
	clReleaseMemObject(other);
	clReleaseCommandQueue(queue);
	clReleaseContext(context);
	return 0;
}
