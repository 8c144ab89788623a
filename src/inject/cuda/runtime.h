/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA, as the table of runtimes has it. Its door is InitializeInjection() (cuda.c), which libcuda
 * calls where $CUDA_INJECTION64_PATH names the library. What its files share is in cuda.h.
 */
#pragma once

#include "inject/runtime.h"

extern const struct runtime cuda_runtime;
