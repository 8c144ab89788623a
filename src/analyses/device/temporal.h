/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices did from their first work to the end of their last: how long they computed, copied,
 * communicated and were idle, and what of it ran at the same time. Each moment counts once for each
 * device, however many streams are busy in it. Of a recording with windows only what was recorded
 * counts.
 */
#pragma once

#include "analyses/trace_view.h"

/* Bits of a set of kinds: 1 << TRACE_COMPUTE … */
#define TEMPORAL_SETS 8

struct temporal_device {
	int64_t busy_ns;                      /* some work ran */
	int64_t idle_ns;                      /* between two pieces of work */
	int64_t by_kind_ns[TRACE_OTHER_KIND]; /* work of this kind ran, alone or not */
	int64_t by_set_ns[TEMPORAL_SETS];     /* of [1] and above: just these kinds ran */
	int64_t communication_beside_compute_ns;
};

struct temporal {
	ARRAY_OF(struct temporal_device) devices; /* those of the view */
};

static inline int64_t temporal_span_ns(const struct temporal_device *device)
{
	return device->busy_ns + device->idle_ns;
}

/* How long at least these kinds (bits) ran at the same time. */
int64_t temporal_ns(const struct temporal_device *device, unsigned kinds);

/* Busy, and not computing. */
static inline int64_t temporal_non_compute_ns(const struct temporal_device *device)
{
	return device->busy_ns - device->by_kind_ns[TRACE_COMPUTE];
}

/* Returns 0 or -ENOMEM. */
int temporal_init(struct temporal *temporal, const struct trace_view *view);
void temporal_done(struct temporal *temporal);
#define _cleanup_temporal_ _cleanup_(temporal_done)
