/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads did while devices were idle, of another tool's trace: each gap (device/idle.h) is
 * distinguished by the rows that the thread was in which launched the next work.
 */
#pragma once

#include "analyses/device/idle.h"
#include "analyses/program/trace_stacks.h"

struct trace_idle_part {
	int64_t start_ns, end_ns; /* as the view has them; end > start */
	uint32_t track; /* of the thread; of the next work's stream where that is not known */
	uint32_t place; /* of the stacks; MODEL_NONE: the thread was in no row */
	enum device_idle_cause cause;
};

struct trace_idle {
	ARRAY_OF(struct trace_idle_part) parts; /* of one device after the other, by time */
};

/* Of the trace whose stretches the stacks have. Returns 0 or -ENOMEM. */
int trace_idle_find(
	struct trace_idle *idle, const struct trace_stacks *stacks, const struct trace_view *view);
void trace_idle_done(struct trace_idle *idle);
#define _cleanup_trace_idle_ _cleanup_(trace_idle_done)
