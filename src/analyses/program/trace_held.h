/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was in use of devices' memory at each device's own peak, of another tool's trace: each block
 * with the stack that the file has of its allocation, or else with the rows that the thread was in.
 */
#pragma once

#include "analyses/program/trace_stacks.h"

struct trace_held_part {
	int64_t time_ns; /* as the view has it: of the allocation */
	uint64_t bytes;
	uint32_t track;   /* of the thread; MODEL_NONE: not known */
	uint32_t device;  /* in trace_held.devices */
	uint32_t place;   /* of the stacks; MODEL_NONE: not known */
	const char *leaf; /* what stands in its place then, else NULL */
};

struct trace_held_device {
	char frame[96]; /* "[memory of GPU 0]" */
};

struct trace_held {
	ARRAY_OF(struct trace_held_part) parts; /* of one device after the other */
	ARRAY_OF(struct trace_held_device) devices;
};

/*
 * Does the trace have allocations of devices' memory? `ret_only_host`: it has some, but only of the
 * host's.
 */
bool trace_held_has_any(const struct trace_view *view, bool *ret_only_host);

/* Of the trace whose places the stacks have. Returns 0 or -ENOMEM. */
int trace_held_find(
	struct trace_held *held, struct trace_stacks *stacks, const struct trace_view *view);
void trace_held_done(struct trace_held *held);
#define _cleanup_trace_held_ _cleanup_(trace_held_done)
