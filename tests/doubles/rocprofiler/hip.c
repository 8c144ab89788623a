/* SPDX-License-Identifier: Apache-2.0 */
#include "double.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT      __attribute__((visibility("default")))
#define KERNEL_NS   20000
#define GRAPH_NODES 3
#define GPU         300
#define CPU         100
#define QUEUE       0x7f00
#define HIP_ERROR   1

static const struct double_rocprofiler *sdk; /* NULL: nobody traces */
static bool is_capturing;

static void load_sdk(void)
{
	Dl_info info;
	char path[4096];
	void *library;

	if (!getenv("ROCP_TOOL_LIBRARIES"))
		return;
	dladdr((const void *)load_sdk, &info);
	snprintf(path, sizeof(path), "%.*s/librocprofiler-sdk-double.so",
		(int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
	library = getenv("DOUBLE_ROCPROFILER_MISSING") ? NULL : dlopen(path, RTLD_LAZY);
	sdk = library ? dlsym(library, "double_rocprofiler") : NULL;
	if (!sdk) {
		fputs("double: rocprofiler-sdk was not found\n", stderr);
		abort();
	}
	sdk->load_tools();
}

static void start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_sdk);
}

static uint64_t enter(const char *call)
{
	start();
	return sdk ? sdk->enter(call) : 0;
}

static int leave(const char *call, uint64_t internal, int result)
{
	if (sdk)
		sdk->leave(call, internal, result);
	return result;
}

static struct rocprofiler_record ended_work(int kind, uint64_t internal, size_t bytes)
{
	struct timespec now;
	struct rocprofiler_record record = {.size = bytes, .kind = kind, .internal = internal};

	record.external = sdk->request(kind, internal);
	clock_gettime(CLOCK_BOOTTIME, &now);
	record.start = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	record.end = record.start + KERNEL_NS;
	return record;
}

static void dispatch(uint64_t internal, unsigned kernel)
{
	struct {
		struct rocprofiler_dispatch known;
		unsigned char more[56];
	} record = {.known = {.agent = GPU,
			    .queue = QUEUE,
			    .kernel = kernel,
			    .group_bytes = 3072,
			    .workgroup = {256, 1, 1},
			    .grid = {16384, 1, 1}}};

	if (!sdk)
		return;
	record.known.common = ended_work(ROCPROFILER_BUFFER_DISPATCH, internal, sizeof(record));
	sdk->emit(ROCPROFILER_BUFFER_DISPATCH, &record, sizeof(record));
}

EXPORT int double_is_traced(void)
{
	return sdk && sdk->is_tracing();
}

EXPORT int hipModuleLoad(void)
{
	start();
	if (sdk) {
		sdk->kernel(KERNEL_SCALE, "_Z5scalePff.kd");
		sdk->kernel(KERNEL_ADD, "add.kd");
		sdk->kernel(KERNEL_ODD, "odd.kd");
	}
	return 0;
}

EXPORT int hipLaunchKernel(unsigned kernel)
{
	uint64_t internal = enter("hipLaunchKernel");

	if (kernel != KERNEL_ODD && !is_capturing)
		dispatch(internal, kernel);
	return leave("hipLaunchKernel", internal, kernel == KERNEL_ODD ? HIP_ERROR : 0);
}

EXPORT int hipMemcpyAsync(size_t bytes)
{
	uint64_t internal = enter("hipMemcpyAsync");
	struct rocprofiler_copy record = {.to_agent = GPU, .from_agent = CPU, .bytes = bytes};

	if (sdk) {
		record.common = ended_work(ROCPROFILER_BUFFER_COPY, internal, sizeof(record) + 16);
		record.common.operation = ROCPROFILER_COPY_HOST_TO_DEVICE;
		sdk->emit(ROCPROFILER_BUFFER_COPY, &record, sizeof(record));
	}
	return leave("hipMemcpyAsync", internal, 0);
}

/* The host does it: no device gets work. */
EXPORT int hipMemset(void)
{
	return leave("hipMemset", enter("hipMemset"), 0);
}

EXPORT int hipDeviceSynchronize(void)
{
	const struct timespec time = {.tv_nsec = 100000};
	uint64_t internal = enter("hipDeviceSynchronize");

	nanosleep(&time, NULL);
	return leave("hipDeviceSynchronize", internal, 0);
}

EXPORT int hipStreamBeginCapture(void)
{
	uint64_t internal = enter("hipStreamBeginCapture");

	is_capturing = true;
	return leave("hipStreamBeginCapture", internal, 0);
}

EXPORT int hipStreamEndCapture(void)
{
	uint64_t internal = enter("hipStreamEndCapture");

	is_capturing = false;
	return leave("hipStreamEndCapture", internal, 0);
}

EXPORT int hipGraphLaunch(void)
{
	uint64_t internal = enter("hipGraphLaunch");

	for (unsigned i = 0; i < GRAPH_NODES; i++)
		dispatch(internal, KERNEL_ADD);
	return leave("hipGraphLaunch", internal, 0);
}
