/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx_opencl: 20 kernels launched in the range "forward", 10 in "backward", 5 in none; they run
 * when the device comes to it, which may be after their range has ended. "step" lies around all,
 * and "process" is a range of the process. The mark "half" comes before "backward".
 */
#include <stdio.h>

#include "doubles/nvtx/nvtx.h"
#include "opencl_headers.h"

#define COUNT ((size_t)1 << 16)

static cl_command_queue queue;
static cl_kernel kernel;

static void check(cl_int error, const char *what)
{
	if (error == CL_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, error);
	exit(3);
}

static void launch(int count)
{
	size_t size = COUNT;

	for (int i = 0; i < count; i++)
		check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL),
			"clEnqueueNDRangeKernel");
}

static void set_up(void)
{
	const char *source = "__kernel void work(__global float *data)\n"
			     "{ for (int i = 0; i < 50; i++) data[get_global_id(0)] += i; }\n";
	cl_platform_id platform;
	cl_context context;
	cl_device_id device;
	cl_program program;
	cl_mem buffer;
	cl_int error;

	check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	check(error, "clCreateContext");
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
	check(error, "clCreateCommandQueueWithProperties");
	program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
	check(error, "clCreateProgramWithSource");
	check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
	buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, COUNT * sizeof(float), NULL, &error);
	check(error, "clCreateBuffer");
	kernel = clCreateKernel(program, "work", &error);
	check(error, "clCreateKernel");
	check(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), "clSetKernelArg");
}

int main(void)
{
	nvtxRangeId_t process;

	set_up();
	process = nvtxRangeStartA("process");
	nvtxRangePushA("step");
	nvtxRangePushA("forward");
	launch(20);
	nvtxRangePop();
	check(clFinish(queue), "clFinish");
	nvtxMarkA("half");
	nvtxRangePushA("backward");
	launch(10);
	nvtxRangePop();
	check(clFinish(queue), "clFinish");
	nvtxRangePop();
	nvtxRangeEnd(process);
	launch(5);
	check(clFinish(queue), "clFinish");
	return 5;
}
