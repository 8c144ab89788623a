/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opencl [launches] [end] [threads]: two threads, or so many, that each launch the kernel `scale`
 * so many times from launch_scale() and `add` half as often from launch_add(), with a write before
 * and a read after, one fill and one copy. Prints the sums, which are known. `end`: "exit"
 * (default), "_exit" or "kill" without waiting for the device's callbacks, "fork" forks after all
 * is set up, "workers" as long as it launches, and "exec" becomes "opencl LAUNCHES exit".
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opencl_headers.h"

#define COUNT       4096
#define MAX_THREADS 128
#define WORKERS     4

static const char source[] = "__kernel void scale(__global float *data, float factor)\n"
			     "{ data[get_global_id(0)] *= factor; }\n"
			     "__kernel void add(__global float *data, float much)\n"
			     "{ data[get_global_id(0)] += much; }\n";

static cl_context context;
static cl_device_id device;
static cl_program program;
static int launches = 100;
static const char *end = "exit";

static void check(cl_int error, const char *what)
{
	if (error == CL_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, error);
	exit(3);
}

static __attribute__((noinline)) void launch(cl_command_queue queue, cl_kernel kernel, float value)
{
	size_t size = COUNT;

	check(clSetKernelArg(kernel, 1, sizeof(value), &value), "clSetKernelArg");
	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL),
		"clEnqueueNDRangeKernel");
}

static __attribute__((noinline)) void launch_scale(cl_command_queue queue, cl_kernel kernel)
{
	launch(queue, kernel, 1.0f);
	__asm__ volatile("");
}

static __attribute__((noinline)) void launch_add(cl_command_queue queue, cl_kernel kernel)
{
	launch(queue, kernel, 1.0f);
	__asm__ volatile("");
}

static cl_kernel kernel_of(const char *name, cl_mem buffer)
{
	cl_int error;
	cl_kernel kernel = clCreateKernel(program, name, &error);

	check(error, name);
	check(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), "clSetKernelArg");
	return kernel;
}

/* A program sees its queue as it made it. */
static void check_queue(cl_command_queue queue, cl_event event)
{
	cl_command_queue_properties properties;
	cl_ulong time;

	check(clGetCommandQueueInfo(
		      queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties, NULL),
		"clGetCommandQueueInfo");
	if (properties & CL_QUEUE_PROFILING_ENABLE)
		check(-1, "the queue tells times");
	if (clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(time), &time, NULL) !=
		CL_PROFILING_INFO_NOT_AVAILABLE)
		check(-1, "the event tells times");
}

static void *run(void *argument)
{
	float data[COUNT], zero = 0, sum = 0;
	cl_kernel scale, add;
	cl_command_queue queue;
	cl_mem buffer, other;
	cl_event written;
	cl_int error;

	queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
	check(error, "clCreateCommandQueueWithProperties");
	buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(data), NULL, &error);
	check(error, "clCreateBuffer");
	other = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(data), NULL, &error);
	check(error, "clCreateBuffer");
	scale = kernel_of("scale", buffer);
	add = kernel_of("add", buffer);
	for (int i = 0; i < COUNT; i++)
		data[i] = 1;
	check(clEnqueueFillBuffer(
		      queue, other, &zero, sizeof(zero), 0, sizeof(data), 0, NULL, NULL),
		"clEnqueueFillBuffer");
	check(clEnqueueWriteBuffer(
		      queue, buffer, CL_FALSE, 0, sizeof(data), data, 0, NULL, &written),
		"clEnqueueWriteBuffer");
	check(clWaitForEvents(1, &written), "clWaitForEvents");
	check_queue(queue, written);
	clReleaseEvent(written);
	for (int i = 0; i < launches; i++) {
		launch_scale(queue, scale);
		if (i % 2)
			launch_add(queue, add);
	}
	check(clEnqueueCopyBuffer(queue, buffer, other, 0, 0, sizeof(data), 0, NULL, NULL),
		"clEnqueueCopyBuffer");
	check(clFinish(queue), "clFinish");
	check(clEnqueueReadBuffer(queue, other, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL),
		"clEnqueueReadBuffer");
	for (int i = 0; i < COUNT; i++)
		sum += data[i] - (float)(argument != NULL);
	printf("sum %.0f\n", (double)sum + (argument ? COUNT : 0));
	fflush(stdout);
	if (strcmp(end, "exit") == 0) {
		clReleaseKernel(scale);
		clReleaseKernel(add);
		clReleaseMemObject(buffer);
		clReleaseMemObject(other);
		clReleaseCommandQueue(queue);
	}
	return NULL;
}

static void fork_child(void)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		puts("child");
		exit(7); /* with all that is registered for the end of the process */
	}
	waitpid(child, &status, 0);
	printf("child ended with %d\n", WEXITSTATUS(status));
}

/* As a data loader has them: they do not use the device, and end without a word to it. */
static void start_workers(pid_t *workers)
{
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = fork();
		if (workers[i] == 0)
			_exit(i);
	}
}

static void end_workers(const pid_t *workers)
{
	int status, sum = 0;

	for (int i = 0; i < WORKERS; i++) {
		waitpid(workers[i], &status, 0);
		sum += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
	}
	printf("workers ended with %d\n", sum);
}

static void set_up(void)
{
	const char *text = source;
	cl_platform_id platform;
	cl_int error;

	check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	check(error, "clCreateContext");
	program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
	check(error, "clCreateProgramWithSource");
	check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
}

int main(int count, char **arguments)
{
	pthread_t threads[MAX_THREADS];
	pid_t workers[WORKERS];
	int thread_count = 2;

	if (count > 1)
		launches = (int)strtol(arguments[1], NULL, 10);
	if (count > 2)
		end = arguments[2];
	if (count > 3)
		thread_count = (int)strtol(arguments[3], NULL, 10);
	if (thread_count > MAX_THREADS)
		return 2;
	set_up();
	for (int i = 1; i < thread_count; i++)
		pthread_create(&threads[i], NULL, run, program);
	if (strcmp(end, "workers") == 0)
		start_workers(workers);
	run(NULL);
	if (strcmp(end, "workers") == 0)
		end_workers(workers);
	for (int i = 1; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	if (strcmp(end, "fork") == 0)
		fork_child();
	if (strcmp(end, "exec") == 0)
		execl("/proc/self/exe", arguments[0], arguments[1], "exit", NULL);
	if (strcmp(end, "_exit") == 0)
		_exit(5);
	if (strcmp(end, "kill") == 0)
		raise(SIGKILL);
	return 5;
}
