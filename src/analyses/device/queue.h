/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many launches wait on each stream, over time. A launch waits from the return of its call
 * until its first work on the stream begins, and is one, however much work it starts. Figures are
 * weighed by time.
 */
#pragma once

#include "analyses/statistics.h"
#include "analyses/trace_order.h"
#include "analyses/trace_view.h"

/* CUDA's limit of launches that wait on a stream: the next call blocks. */
#define QUEUE_FULL 1024

struct queue_point {
	int64_t time_ns;
	int64_t length; /* from then on */
};

struct queue_stream {
	uint32_t stream;       /* index in view.streams */
	uint32_t first, count; /* of `points` */
	uint64_t launches;
	struct trace_describe points; /* the lengths at the moments of change */
	/* From the first change to the last, where it was recorded. Lengths below 0 are empty. */
	int64_t span_ns, empty_ns, full_ns;
	double mean; /* weighed by time */
	int64_t longest;
};

struct queue {
	ARRAY_OF(struct queue_stream) streams; /* with launches */
	ARRAY_OF(struct queue_point) points;
};

/* A launch joins the queue of a stream, or leaves it. */
struct queue_change {
	int64_t time_ns;
	uint32_t stream;
	int32_t change;
};

struct queue_changes {
	ARRAY_OF(struct queue_change) items;
};

/* For those who count otherwise: a change, and what follows when all are there; `order`: of
 * changes. */
int queue_add_change(
	struct queue_changes *changes, int64_t time_ns, uint32_t stream, int32_t change);
int queue_finish(struct queue *queue, const struct trace_view *view, struct queue_changes *changes,
	trace_order *order);

/* Returns 0 or -ENOMEM. */
int queue_init(struct queue *queue, const struct trace_view *view);
void queue_done(struct queue *queue);
#define _cleanup_queue_ _cleanup_(queue_done)
