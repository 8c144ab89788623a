/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch-cost BURSTS: what a kernel launch of OpenCL takes, in nanoseconds, as JSON. All launches
 * of a burst wait for an event, so that no other thread of the driver runs meanwhile; the kernels
 * run between the bursts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "opencl_headers.h"

#define BURST      500
#define MAX_BURSTS 10000
#define DEPTH      20

static const char source[] = "__kernel void nothing(__global float *data) { data[0] = 1; }\n";

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;
static double burst_ns[MAX_BURSTS];

static void check(cl_int error, const char *what)
{
	if (error == CL_SUCCESS)
		return;
	fprintf(stderr, "launch-cost: %s: error %d\n", what, error);
	exit(3);
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void set_up(void)
{
	const char *text = source;
	cl_platform_id platform;
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
	program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
	check(error, "clCreateProgramWithSource");
	check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
	kernel = clCreateKernel(program, "nothing", &error);
	check(error, "clCreateKernel");
	buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &error);
	check(error, "clCreateBuffer");
	check(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), "clSetKernelArg");
}

static double burst(void)
{
	cl_int error;
	cl_event gate = clCreateUserEvent(context, &error);
	size_t size = 1;
	double begin_ns, end_ns;

	check(error, "clCreateUserEvent");
	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 1, &gate, NULL), "gate");
	begin_ns = now_ns();
	for (int i = 0; i < BURST; i++)
		error |= clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL);
	end_ns = now_ns();
	check(error, "clEnqueueNDRangeKernel");
	check(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
	check(clFinish(queue), "clFinish");
	clReleaseEvent(gate);
	return (end_ns - begin_ns) / BURST;
}

static int compare(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static void run_bursts(int count)
{
	for (int i = 0; i < count; i++)
		burst_ns[i] = burst();
	qsort(burst_ns, (size_t)count, sizeof(*burst_ns), compare);
	printf("{\"launches\": %d, \"launch_ns\": %.1f}\n", count * BURST, burst_ns[count / 2]);
}

static __attribute__((noinline)) void run_deep(int depth, int count)
{
	if (depth)
		run_deep(depth - 1, count);
	else
		run_bursts(count);
	__asm__ volatile("");
}

int main(int count, char **arguments)
{
	int bursts = count > 1 ? (int)strtol(arguments[1], NULL, 10) : 0;

	if (bursts < 1 || bursts > MAX_BURSTS) {
		fprintf(stderr, "launch-cost BURSTS\n");
		return 2;
	}
	set_up();
	burst(); /* the driver compiles the kernel */
	run_deep(DEPTH, bursts);
	return 0;
}
