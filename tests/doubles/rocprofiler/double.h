/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test doubles: NOT rocprofiler-sdk, NOT HIP. librocprofiler-sdk-double.so (sdk.c) has the
 * functions of rocprofiler-sdk that sonde calls, libamdhip64-double.so (hip.c) the few of HIP that
 * hip-program calls. No device is there: hip.c says what one would have done. They do what
 * rocprofiler-sdk's headers and sources say; where hardware shows otherwise, they are wrong.
 *
 * From the environment:
 *   ROCP_TOOL_LIBRARIES         loads the double of rocprofiler-sdk, which loads these
 *   DOUBLE_ROCPROFILER_VERSION  what tools are told, 10000 if not set
 *   DOUBLE_ROCPROFILER_REFUSE   what configuring a service returns, 0 if not set
 *   DOUBLE_ROCPROFILER_MISSING  the program ends as with AMD's libraries, which do not find it
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "inject/hip/rocprofiler_abi.h"

/* What hip.c needs of sdk.c: "double_rocprofiler". */
struct double_rocprofiler {
	void (*load_tools)(void);
	/* Code that has this kernel is loaded. */
	void (*kernel)(uint64_t number, const char *symbol);
	/* A call begins, by its name; its correlation id, for the next two. */
	uint64_t (*enter)(const char *call);
	void (*leave)(const char *call, uint64_t internal, int result);
	/* Within a call: the id that the tool gives its work. */
	uint64_t (*request)(int kind, uint64_t internal);
	/* Work has ended. */
	void (*emit)(int kind, const void *record, size_t bytes);
	int (*is_tracing)(void); /* HIP's calls */
};

/* ---- of HIP, as far as it matters who calls ---- */

int hipModuleLoad(void);
int hipLaunchKernel(unsigned kernel);
int hipMemcpyAsync(size_t bytes);
int hipMemset(void);
int hipDeviceSynchronize(void);
int hipStreamBeginCapture(void);
int hipStreamEndCapture(void);
int hipGraphLaunch(void);
/* None of HIP's: does anybody trace its calls? */
int double_is_traced(void);

/* Kernels: scale, add, odd, of which launches fail. */
enum { KERNEL_SCALE = 1, KERNEL_ADD = 2, KERNEL_ODD = 3 };
