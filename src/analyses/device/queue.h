/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many launches wait on each stream, over time: HTA's queue length.
 *
 * Ours: a launch waits from the return of its call until its first work on the stream begins, and
 * is one, however much work it starts. Figures are weighed by time. HTA counts from the call's
 * begin, leaves graphs out, and describes the values at the moments of change, each of them once.
 */
#pragma once

#include "analyses/trace_describe.h"
#include "analyses/trace_view.h"

/* CUDA's limit of launches that wait on a stream: the next call blocks. */
#define TRACE_QUEUE_FULL 1024

struct trace_queue_point {
	int64_t time_ns;
	int64_t length; /* from then on */
};

struct trace_queue_stream {
	uint32_t stream;       /* index in view.streams */
	uint32_t first, count; /* of `points` */
	uint64_t launches;
	struct trace_describe points; /* the lengths at the moments of change: HTA's summary */
	/* From the first change to the last. Lengths below 0, which HTA has, count as empty. */
	int64_t span_ns, empty_ns, full_ns;
	double mean; /* weighed by time */
	int64_t longest;
};

struct trace_queue {
	ARRAY_OF(struct trace_queue_stream) streams; /* with launches; by number in HTA */
	ARRAY_OF(struct trace_queue_point) points;
};

/* Returns 0 or -ENOMEM. */
int trace_queue_init(struct trace_queue *queue, const struct trace_view *view);
void trace_queue_done(struct trace_queue *queue);
#define _cleanup_trace_queue_ _cleanup_(trace_queue_done)
