/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a trace in which a thread is held up: synchronisations, copies that wait for their end,
 * allocations that wait for the device. Meanwhile the thread launches nothing.
 */
#pragma once

#include "model/trace.h"

enum trace_blocking_kind {
	TRACE_BLOCKING_WAIT,
	TRACE_BLOCKING_COPY, /* or a fill */
	TRACE_BLOCKING_ALLOCATION,
};

struct trace_blocking_call {
	int64_t start_ns, end_ns;
	uint32_t row, track;
	enum trace_blocking_kind kind;
};

struct trace_blocking {
	ARRAY_OF(struct trace_blocking_call) calls; /* by track, then time; those of one disjoint */
};

/* Returns 0 or -ENOMEM. */
int trace_blocking_init(struct trace_blocking *blocking, const struct trace *trace);
void trace_blocking_done(struct trace_blocking *blocking);
#define _cleanup_trace_blocking_ _cleanup_(trace_blocking_done)

/* The first call of the track that ends after `at_ns`: an index, or the count of calls. */
size_t trace_blocking_find(const struct trace_blocking *blocking, uint32_t track, int64_t at_ns);
