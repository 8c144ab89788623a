/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices did from their first work to the end of their last: HTA's temporal breakdown, its
 * breakdown by types of kernels, and how far communication ran beside computing. Each moment counts
 * once for each device, however many streams are busy in it.
 */
#pragma once

#include "analyses/trace_view.h"

/* Bits of a set of kinds: 1 << TRACE_COMPUTE … */
#define TRACE_KIND_SETS 8

struct trace_temporal_device {
	int64_t first_ns, last_ns;            /* start of its first work, end of its last */
	int64_t busy_ns;                      /* some work ran */
	int64_t by_kind_ns[TRACE_OTHER_KIND]; /* work of this kind ran, alone or not */
	int64_t by_set_ns[TRACE_KIND_SETS];   /* of [1] and above: just these kinds ran */
	int64_t communication_beside_compute_ns;
};

struct trace_temporal {
	ARRAY_OF(struct trace_temporal_device) devices; /* those of the view */
};

static inline int64_t trace_temporal_span_ns(const struct trace_temporal_device *device)
{
	return device->last_ns - device->first_ns;
}

static inline int64_t trace_temporal_idle_ns(const struct trace_temporal_device *device)
{
	return trace_temporal_span_ns(device) - device->busy_ns;
}

/* Busy, and not computing. */
static inline int64_t trace_temporal_non_compute_ns(const struct trace_temporal_device *device)
{
	return device->busy_ns - device->by_kind_ns[TRACE_COMPUTE];
}

/* Returns 0 or -ENOMEM. */
int trace_temporal_init(struct trace_temporal *temporal, const struct trace_view *view);
void trace_temporal_done(struct trace_temporal *temporal);
#define _cleanup_trace_temporal_ _cleanup_(trace_temporal_done)
