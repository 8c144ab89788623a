/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opencl_platforms [launches] [loads]: loads the OpenCL loader, launches a kernel so many times on
 * every platform, and unloads the loader, so many times over. Prints the results of all calls:
 * they may be errors.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl_headers.h"

#define MAX_PLATFORMS 4

static void *loader;

/* The loader's function with the type that its header gives it. */
#define CALL(function) ((__typeof__(&function))dlsym(loader, #function))

static void launch(cl_command_queue queue, cl_kernel kernel, int launches)
{
	const size_t size = 1;
	int failed = 0, last = CL_SUCCESS, status;
	cl_event event;

	for (int i = 0; i < launches; i++) {
		/* Half of them with an event of the program's own. */
		cl_event *place = i % 4 < 2 ? &event : NULL;
		cl_int error = CALL(clEnqueueNDRangeKernel)(
			queue, kernel, 1, NULL, &size, NULL, 0, NULL, place);

		failed += error != CL_SUCCESS;
		if (error != CL_SUCCESS || !place)
			continue;
		CALL(clWaitForEvents)(1, &event);
		status = CL_COMPLETE;
		CALL(clGetEventInfo)
		(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
		last = status < 0 ? status : last;
		CALL(clReleaseEvent)(event);
	}
	printf("%d of %d launches failed, work with %d, the end with %d\n", failed, launches, last,
		CALL(clFinish)(queue));
}

static void use(cl_platform_id platform, int launches)
{
	const char *source = "__kernel void nothing(void) {}";
	char name[256] = "";
	cl_int errors[4];
	cl_device_id device;
	cl_context context;
	cl_program program;
	cl_command_queue queue;
	cl_kernel kernel;

	CALL(clGetPlatformInfo)(platform, CL_PLATFORM_NAME, sizeof(name), name, NULL);
	CALL(clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	context = CALL(clCreateContext)(NULL, 1, &device, NULL, NULL, &errors[0]);
	queue = CALL(clCreateCommandQueueWithProperties)(context, device, NULL, &errors[1]);
	program = CALL(clCreateProgramWithSource)(context, 1, &source, NULL, &errors[2]);
	CALL(clBuildProgram)(program, 1, &device, "", NULL, NULL);
	kernel = CALL(clCreateKernel)(program, "nothing", &errors[3]);
	printf("%s: %d %d %d %d\n", name, errors[0], errors[1], errors[2], errors[3]);
	launch(queue, kernel, launches);
	CALL(clReleaseKernel)(kernel);
	CALL(clReleaseProgram)(program);
	CALL(clReleaseCommandQueue)(queue);
	CALL(clReleaseContext)(context);
}

int main(int count, char **arguments)
{
	int launches = count > 1 ? (int)strtol(arguments[1], NULL, 10) : 10;
	int loads = count > 2 ? (int)strtol(arguments[2], NULL, 10) : 1;
	cl_platform_id platforms[MAX_PLATFORMS];
	cl_uint found = 0;

	for (int i = 0; i < loads; i++) {
		loader = dlopen("libOpenCL.so.1", RTLD_NOW);
		if (!loader)
			return 3;
		CALL(clGetPlatformIDs)(MAX_PLATFORMS, platforms, &found);
		for (cl_uint k = 0; k < found && k < MAX_PLATFORMS; k++)
			use(platforms[k], launches);
		dlclose(loader);
	}
	return 0;
}
