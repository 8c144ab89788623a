/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler steps of all ranks of a run, by number: where in the program a rank was when it
 * launched something. For what compares ranks.
 */
#pragma once

#include "analyses/trace_view.h"

/* Times are those of the first view's trace. */
struct rank_step {
	uint64_t number;
	uint32_t rank; /* its id in `ranks` */
	int64_t start_ns, end_ns;
};

struct rank_steps {
	struct intern ranks;              /* those with steps; the keys are uint32_t */
	ARRAY_OF(struct rank_step) items; /* by rank and start */
	struct map_u64 numbers;           /* that there are; number → ranks that have it */
	int64_t first_ns, last_ns;        /* of all steps */
};

#define RANK_NO_STEP UINT64_MAX

/* Returns 0 or -ENOMEM. */
int rank_steps_init(struct rank_steps *steps, const struct trace_view *views, size_t view_count);
void rank_steps_done(struct rank_steps *steps);
#define _cleanup_rank_steps_ _cleanup_(rank_steps_done)

/* The number of the rank's last step that has begun, if it has not ended; else RANK_NO_STEP. */
uint64_t rank_step_at(const struct rank_steps *steps, uint32_t rank, int64_t time_ns);

/* A time of the view on the clock of the first one. Files may say anything: it may wrap. */
static inline int64_t rank_common_ns(
	const struct trace_view *first, const struct trace_view *view, int64_t time_ns)
{
	return (int64_t)((uint64_t)time_ns + view->trace->base_ns - first->trace->base_ns);
}

/* The rank of a thread's row; MODEL_NONE: it has none. Processes of a recording have their own. */
uint32_t rank_of_row(const struct trace_view *view, const struct trace_event *event);
