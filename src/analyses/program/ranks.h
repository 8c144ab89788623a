/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rank of a job is slow, in which steps and ranges, by how much, and what it does more of
 * there than the fastest one; and which rank the others wait for
 * (collectives.h).
 */
#pragma once

#include "analyses/collectives/collectives.h"
#include "analyses/inference/span_cost.h"

/* What a rank may do more of. */
enum rank_difference {
	RANK_DIFFERENCE_UNKNOWN, /* none of these is about as large: a third to three times */
	RANK_DIFFERENCE_CPU,
	RANK_DIFFERENCE_WAIT,
	RANK_DIFFERENCE_DEVICE,
};

/* "CPU time" …; NULL of the unknown one. */
const char *rank_difference_name(enum rank_difference difference);

/* One rank's ranges, or whole steps, of one name. */
struct rank_time {
	uint32_t rank;
	uint64_t count, total_ns;
	struct span_cost cost; /* in all of them */
	uint64_t wait_ns;      /* of the threads that have them: waits that ended there */
};

struct rank_row {
	const char *name, *domain; /* a step has no domain: "" */
	bool is_step;
	uint32_t first_rank, rank_count; /* ranks->times.items[first_rank] …, by rank */
	uint32_t slowest, fastest;       /* by the mean; indices of ranks->times */
	enum rank_difference difference; /* of which the slowest has more, on average: */
	uint64_t difference_ns;
};

/* How late a rank begins a collective: of HTA's definition. */
struct rank_lateness {
	uint32_t rank;
	uint64_t steps;      /* that have the collective */
	uint64_t late_steps; /* in which the rank was among the last to begin it */
	int64_t lateness_ns; /* after the first rank, on average over its steps */
	int64_t duration_ns; /* of the collective, on average */
};

struct ranks {
	/* Of those that two ranks have or more: steps first, then most time between the slowest
	 * and the fastest rank in all. */
	ARRAY_OF(struct rank_row) rows;
	ARRAY_OF(struct rank_time) times;
	struct collectives collectives;
	/* In place of these, one collective by which HTA tells stragglers; "": none. */
	const char *collective;
	int64_t stream;
	uint64_t steps;
	ARRAY_OF(struct rank_lateness) lateness; /* most late steps first, then the latest */
};

struct rank_input;

/* Of what others define otherwise. */
struct rank_definition {
	/* Fills in `lateness`; NULL: collectives are matched. Returns 0 or -ENOMEM. */
	int (*stragglers)(struct ranks *ranks, const struct rank_input *input);
	size_t candidates; /* ranks that are late in a step; 0: 1 */
};

struct rank_input {
	/* Steps and ranges, as they were recorded, or by trace_programs.h; NULL: none. It was not
	 * weighed. */
	const struct model *model;
	const struct selected *selected; /* its samples; NULL: all */
	/* Rows of one run's ranks, whose clocks are compared: one view of each, or of a recording
	 * with all of them. */
	const struct trace_view *views;
	size_t view_count;
	struct rank_definition definition;
};

/* Returns 0 or -ENOMEM; what one rank has by itself is not there. Strings are the model's, and the
 * traces'. */
int ranks_init(struct ranks *ranks, const struct rank_input *input);
void ranks_done(struct ranks *ranks);
#define _cleanup_ranks_ _cleanup_(ranks_done)

uint64_t rank_time_mean_ns(const struct rank_time *time);
/* How much longer the slowest rank's mean is than the fastest's. */
uint64_t rank_row_spread_ns(const struct ranks *ranks, const struct rank_row *row);
