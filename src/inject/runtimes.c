/* SPDX-License-Identifier: Apache-2.0 */
/* The table of runtimes. */
#include "inject/cuda/runtime.h"
#include "inject/hip/runtime.h"
#include "inject/opencl/runtime.h"

const struct runtime *const runtimes[] = {
	&cuda_runtime,
	&hip_runtime,
	&opencl_runtime,
	NULL,
};
