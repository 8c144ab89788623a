/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HIP, as the table of runtimes has it. Its door is rocprofiler_configure() (hip.c), which
 * rocprofiler-sdk calls where $ROCP_TOOL_LIBRARIES names the library. What its files share is in
 * hip.h.
 */
#pragma once

#include "inject/runtime.h"

extern const struct runtime hip_runtime;
