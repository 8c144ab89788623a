/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of each thread and stream the span that takes longest, from its start to its end; of equal ones
 * the first. Moments take no time and are no spans. Added by the steps of analyses/trace_view.h.
 */
#pragma once

#include "analyses/trace_view.h"

struct toy_longest_row {
	uint32_t track; /* index in trace.tracks */
	uint32_t event; /* index in trace.events */
	uint64_t spans; /* of the track */
	int64_t longest_ns;
	int64_t whole_ns; /* from the track's first start to its last end */
};

struct toy_longest {
	ARRAY_OF(struct toy_longest_row) rows; /* tracks that have spans, in the trace's order */
};

bool toy_is_span(const struct trace_view *view, const struct trace_event *event);

/* Returns 0 or -ENOMEM. */
int toy_longest_init(struct toy_longest *longest, const struct trace_view *view);
void toy_longest_done(struct toy_longest *longest);
#define _cleanup_toy_longest_ _cleanup_(toy_longest_done)
