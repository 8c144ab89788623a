/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of a launch, for every runtime: known from an earlier one, or taken now, by the probe
 * on the marker or as a copy. The gate says how.
 */
#pragma once

#include "inject/inject.h"

/*
 * Of a launch that the calling thread is about to make; `time_ns` is its begin. True when the stack
 * was taken, which takes microseconds.
 */
bool inject_launch_stack(uint64_t correlation, uint64_t time_ns);
