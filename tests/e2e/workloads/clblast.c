/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clblast [repeats]: matrix products by the library CLBlast, in its way with several kernels, and a
 * sum of absolute values; prints the result, which is known.
 */
#include <stdio.h>
#include <stdlib.h>

#include "opencl_headers.h"
#if !__has_include(<clblast_c.h>)
#error "CLBlast's headers are missing: 'tools/deps everything' installs them"
#endif
#include <clblast_c.h>

#define SIDE 96 /* of the matrices: no multiple of the blocks, so that they are padded */

static cl_context context;
static cl_command_queue queue;

static void check(int status, const char *what)
{
	if (status == 0)
		return;
	fprintf(stderr, "%s: error %d\n", what, status);
	exit(3);
}

static cl_mem make_matrix(size_t side, float value)
{
	float *data = calloc(side * side, sizeof(float));
	cl_int error;
	cl_mem buffer;

	if (!data)
		exit(3);
	for (size_t i = 0; i < side * side; i++)
		data[i] = value;
	buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
		side * side * sizeof(float), data, &error);
	check(error, "clCreateBuffer");
	free(data);
	return buffer;
}

/* Every element of the product is SIDE · 2 · 0.5. */
static __attribute__((noinline)) void multiply(int repeats)
{
	cl_mem a = make_matrix(SIDE, 2), b = make_matrix(SIDE, 0.5f), c = make_matrix(SIDE, 0);
	cl_mem sum = make_matrix(1, 0);
	float result;

	for (int i = 0; i < repeats; i++)
		check(CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeYes,
			      SIDE, SIDE, SIDE, 1, a, 0, SIDE, b, 0, SIDE, 0, c, 0, SIDE, &queue,
			      NULL),
			"CLBlastSgemm");
	check(CLBlastSasum(SIDE * SIDE, sum, 0, c, 0, 1, &queue, NULL), "CLBlastSasum");
	check(clEnqueueReadBuffer(queue, sum, CL_TRUE, 0, sizeof(result), &result, 0, NULL, NULL),
		"clEnqueueReadBuffer");
	printf("sum %.0f\n", (double)result);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
	clReleaseMemObject(c);
	clReleaseMemObject(sum);
}

int main(int count, char **arguments)
{
	int repeats = count > 1 ? (int)strtol(arguments[1], NULL, 10) : 5;
	const char *knob = "XGEMM_MIN_INDIRECT_SIZE";
	const size_t always_several = 1;
	cl_platform_id platform;
	cl_device_id device;
	cl_int error;

	check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	check(error, "clCreateContext");
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
	check(error, "clCreateCommandQueueWithProperties");
	check(CLBlastOverrideParameters(
		      device, "GemmRoutine", CLBlastPrecisionSingle, 1, &knob, &always_several),
		"CLBlastOverrideParameters");
	multiply(repeats);
	check(clFinish(queue), "clFinish");
	clReleaseCommandQueue(queue);
	clReleaseContext(context);
	return 0;
}
