/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stragglers: ranks that others wait for. A collective ends at about the same time everywhere, so
 * the rank that begins it last made the others wait. Looked at is, of the last long collective of
 * each step, the one whose duration differs most between ranks (HTA's definition).
 */
#pragma once

#include "analyses/trace_view.h"
#include "base/array.h"

struct trace_straggler_rank {
	uint32_t rank;
	uint64_t steps;      /* that have the collective */
	uint64_t late_steps; /* in which the rank was among the last to begin it */
	int64_t lateness_ns; /* after the first rank, on average over its steps */
	int64_t duration_ns; /* of the collective, on average */
};

struct trace_stragglers {
	/* The collective: of the first view's trace; "" when there is none to tell by. */
	const char *name;
	int64_t stream;
	uint64_t steps;
	ARRAY_OF(struct trace_straggler_rank) ranks; /* most late steps first, then the latest */
};

struct trace_straggler_options {
	size_t candidates;  /* ranks that are late in a step; 0: 1, in HTA 2 */
	double least_share; /* of a step's time, that a collective must take; 0: 0.01 */
};

/*
 * Views are of one run's ranks: clocks are compared. Returns 0 or -ENOMEM; with one rank, or
 * without steps or long collectives, ranks are empty.
 */
int trace_stragglers_init(struct trace_stragglers *stragglers, const struct trace_view *views,
	size_t count, const struct trace_straggler_options *options);
void trace_stragglers_done(struct trace_stragglers *stragglers);
#define _cleanup_trace_stragglers_ _cleanup_(trace_stragglers_done)
