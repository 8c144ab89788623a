/* SPDX-License-Identifier: Apache-2.0 */
/* Where each frame of a flame graph lies: for flamegraph.c. */
#pragma once

#include <stdbool.h>

#include "analyses/cpu/call_tree.h"

/* A node's place: start and width as parts of the whole, both 0 … 1. */
struct flamegraph_box {
	double start, width;
	bool drawn;
};

struct flamegraph_layout {
	struct flamegraph_box *boxes; /* by node */
	bool is_diff;
	uint32_t max_depth;  /* of drawn ones */
	uint64_t pruned;     /* frames left out because they are too narrow */
	double pruned_width; /* what they cover of the whole, in the row where each subtree was cut
			      */
};

/*
 * Lays out a finished tree; one side, or with `is_diff` the mean of both sides' shares. Boxes
 * narrower than `minimum_width` are not drawn, nor is what they call. Returns 0 or -ENOMEM.
 */
int flamegraph_layout_init(struct flamegraph_layout *layout, const struct call_tree *tree,
	bool is_diff, double minimum_width);
void flamegraph_layout_done(struct flamegraph_layout *layout);
#define _cleanup_flamegraph_layout_ _cleanup_(flamegraph_layout_done)

/* A node's part of a side's samples, 0 … 1. */
double flamegraph_share(const struct call_tree *tree, uint32_t node, unsigned side);
