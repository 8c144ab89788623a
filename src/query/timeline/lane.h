/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: slices of one track and depth, by start; none overlaps the next. Over them lies a tree of
 * nodes, each of which sums up LANE_FANOUT of the level below. A picture goes down only where a
 * node is wider than a column, so that it visits as many nodes as it has columns, wherever slices
 * are dense.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/macros.h"

#define LANE_FANOUT 16
#define LANE_LEVELS 8 /* 16^8 = 2^32 slices */

struct lane_slice {
	int64_t start_ns, duration_ns; /* duration >= 0 */
	uint32_t name, category;
};

/* Where a lane's slices come from: the n-th of them. */
typedef struct lane_slice lane_slice_function(const void *context, size_t n);

/* Of several slices that follow each other. */
struct lane_node {
	int64_t start_ns;      /* of the first */
	int64_t last_start_ns; /* of the last */
	int64_t end_ns;
	int64_t longest_ns;
	uint64_t busy_ns; /* all durations */
	/* The name that takes more than half of the time, if there is one: the majority vote of
	 * Boyer and Moore, weighted by duration. `vote_ns` is what is left of it. */
	uint64_t vote_ns;
	uint32_t name, category;
};

struct lane {
	lane_slice_function *slice;
	const void *context;
	size_t count;
	struct lane_node *levels[LANE_LEVELS]; /* 0: over the slices */
	size_t level_counts[LANE_LEVELS];
	unsigned level_count;
};

/* Of `count` slices. Returns 0 or -ENOMEM. */
int lane_init(struct lane *lane, lane_slice_function *slice, const void *context, size_t count);
void lane_done(struct lane *lane);

/* One of the answer: a slice by itself, or several of a column. */
struct lane_group {
	struct lane_node sum;
	size_t first; /* the first slice */
	uint32_t count;
};

struct lane_groups {
	ARRAY_OF(struct lane_group) items;
};

/*
 * Appends what [from_ns, to_ns) shows at this width of a column: see timeline_tile(). Returns 0 or
 * -ENOMEM.
 */
int lane_draw(const struct lane *lane, int64_t from_ns, int64_t to_ns, int64_t column_ns,
	struct lane_groups *groups);
