/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL, as the table of runtimes has it. Its door is clInitLayer() (opencl.c), which the loader
 * calls where $OPENCL_LAYERS names the library. One launch, from its begin to its end, is launch.h.
 */
#pragma once

#include "inject/runtime.h"

extern const struct runtime opencl_runtime;
