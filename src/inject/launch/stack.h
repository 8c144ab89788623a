/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of a launch, for every runtime: known from an earlier one, or taken now, by the probe
 * on the marker or as a copy. The gate says how.
 */
#pragma once

#include "inject/inject.h"

/* False: inject_launch_stack() would do nothing. */
static inline bool inject_takes_stacks(void)
{
	const struct wire_gate *gate = atomic_load_explicit(&inject_gate, memory_order_relaxed);

	return atomic_load_explicit(&gate->stacks, memory_order_relaxed) != WIRE_LAUNCH_STACKS_OFF;
}

/*
 * Of a launch that the calling thread is about to make; `time_ns` is its begin. True when the stack
 * was taken, which takes microseconds.
 */
bool inject_launch_stack(uint64_t correlation, uint64_t time_ns);
