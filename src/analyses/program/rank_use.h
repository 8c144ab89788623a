/* SPDX-License-Identifier: Apache-2.0 */
/* How far the ranks of a job lie apart: for the ranges and steps of each name, which is slowest. */
#pragma once

#include "base/array.h"
#include "model/model.h"

/* One rank's ranges, or whole steps, of one name. */
struct rank_time {
	uint32_t rank;
	uint64_t count, total_ns;
};

struct rank_row {
	const char *name, *domain; /* a step has no domain: "" */
	bool is_step;
	uint32_t first_rank, rank_count; /* use->times.items[first_rank] …, by rank */
	uint32_t slowest, fastest;       /* by the mean; indices of use->times */
};

struct rank_use {
	/* Of those that two ranks have or more: steps first, then most time between the slowest
	 * and the fastest rank in all. */
	ARRAY_OF(struct rank_row) rows;
	ARRAY_OF(struct rank_time) times;
};

/* Returns 0 or -ENOMEM. Strings are the model's. */
int rank_use_init(struct rank_use *use, const struct model *model);
void rank_use_done(struct rank_use *use);
#define _cleanup_rank_use_ _cleanup_(rank_use_done)

uint64_t rank_time_mean_ns(const struct rank_time *time);
/* How much longer the slowest rank's mean is than the fastest's. */
uint64_t rank_row_spread_ns(const struct rank_use *use, const struct rank_row *row);
/* Is the rank of any process known? */
bool model_has_ranks(const struct model *model);
