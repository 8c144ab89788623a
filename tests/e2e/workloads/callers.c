/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callers [rounds]: launches that look alike from where they are made. Each path to the one
 * function that launches has a kernel of its own, `from_PATH`, whose stacks must all have the frame
 * `by_PATH`: callers whose frames lie at the same place, with room on the stack that is taken now
 * by one function and now by another, deep in a recursion, and in a handler of signals. The kernel
 * `from_fiber` is launched on a stack that is not the thread's.
 */
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "opencl_headers.h"

/* The project's code has none of it. */
#pragma GCC diagnostic ignored "-Walloca"

#define PATHS(do)                                                                                  \
	do                                                                                         \
	(left) do(right) do(outer_room) do(inner_room) do(deep) do(shallow) do(signal) do(fiber)
#define NAME(path)   #path,
#define NUMBER(path) PATH_##path,
#define NOINLINE     __attribute__((noinline))

enum path { PATHS(NUMBER) PATH_COUNT };

static const char *const names[] = {PATHS(NAME)};
static cl_command_queue queue;
static cl_kernel kernels[PATH_COUNT];
static volatile int sink;

static void check(cl_int error, const char *what)
{
	if (error == CL_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, error);
	exit(3);
}

static NOINLINE void launch(enum path path)
{
	size_t size = 1;

	check(clEnqueueNDRangeKernel(queue, kernels[path], 1, NULL, &size, NULL, 0, NULL, NULL),
		"clEnqueueNDRangeKernel");
	sink++;
}

/* ---- the same frames, called from two places ---- */

static NOINLINE void by_left(void)
{
	launch(PATH_left);
	sink++;
}

static NOINLINE void by_right(void)
{
	launch(PATH_right);
	sink++;
}

/* ---- room on the stack: both paths launch at the same stack pointer ---- */

static NOINLINE void take_room(size_t bytes, enum path path)
{
	volatile char *room = alloca(bytes);

	room[0] = 1;
	launch(path);
	sink += room[0];
}

static NOINLINE void by_outer_room(size_t bytes)
{
	volatile char *room = alloca(bytes);

	room[bytes - 1] = 1;
	take_room(1024 - bytes, PATH_outer_room);
	sink += room[bytes - 1];
}

static NOINLINE void by_inner_room(size_t bytes)
{
	volatile char *room = alloca(bytes);

	room[bytes - 1] = 1;
	take_room(1024 - bytes, PATH_inner_room);
	sink += room[bytes - 1];
}

/* ---- recursion ---- */

static NOINLINE void recurse(int depth, enum path path)
{
	if (depth)
		recurse(depth - 1, path);
	else
		launch(path);
	sink++;
}

static NOINLINE void by_deep(void)
{
	recurse(40, PATH_deep);
	sink++;
}

static NOINLINE void by_shallow(void)
{
	recurse(2, PATH_shallow);
	sink++;
}

/* ---- a handler, another stack ---- */

static NOINLINE void by_signal(int number)
{
	launch(PATH_signal);
	sink += number;
}

static ucontext_t thread, fiber;

static NOINLINE void by_fiber(void)
{
	for (;;) {
		launch(PATH_fiber);
		swapcontext(&fiber, &thread);
	}
}

static void make_fiber(void)
{
	static char stack[64 * 1024];

	getcontext(&fiber);
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = sizeof(stack);
	fiber.uc_link = &thread;
	makecontext(&fiber, by_fiber, 0);
}

/* ---- setting up ---- */

static void make_kernels(void)
{
	char source[4096] = "", *end = source;
	const char *texts[] = {source};
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_program program;
	cl_int error;

	for (int i = 0; i < PATH_COUNT; i++)
		end += sprintf(end, "__kernel void from_%s(void) {}\n", names[i]);
	check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	check(error, "clCreateContext");
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
	check(error, "clCreateCommandQueueWithProperties");
	program = clCreateProgramWithSource(context, 1, texts, NULL, &error);
	check(error, "clCreateProgramWithSource");
	check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
	for (int i = 0; i < PATH_COUNT; i++) {
		char name[64];

		snprintf(name, sizeof(name), "from_%s", names[i]);
		kernels[i] = clCreateKernel(program, name, &error);
		check(error, name);
	}
}

int main(int count, char **arguments)
{
	int rounds = count > 1 ? atoi(arguments[1]) : 100;

	make_kernels();
	make_fiber();
	signal(SIGUSR1, by_signal);
	for (int i = 0; i < rounds; i++) {
		by_left();
		by_right();
		/* What one leaves behind lies where the other's frames are. */
		by_outer_room(256 + 16 * (size_t)(i % 7));
		by_inner_room(512 + 16 * (size_t)(i % 5));
		by_deep();
		by_shallow();
		raise(SIGUSR1);
		swapcontext(&thread, &fiber);
		if (i % 50 == 49)
			check(clFinish(queue), "clFinish");
	}
	check(clFinish(queue), "clFinish");
	printf("%d launches\n", rounds * PATH_COUNT);
	return 0;
}
