/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed from one run to another, by call tree: an operator is compared with the same
 * operator at the same place, below the same annotations, modules, Python functions and operators.
 * Lines of Python functions, and numbers of steps, do not count: a function that moved is the same.
 * What only one run has is compared with what only the other has if name and order fit ("moved").
 *
 * Figures are of one step of one rank, where both runs have profiler steps, else of one rank. Rows
 * have their own device time, that of the kernels that they launch themselves, and their threads'
 * time without what lies in them: no row is the sum of others, and all add up to the change.
 */
#pragma once

#include "analyses/trace_view.h"

struct tree_diff_kernel {
	const char *name;
	uint32_t row;
	double count[2], device_ns[2];
};

struct tree_diff_row {
	const char *path; /* "Net_0 / Linear_0 / aten::linear", without its own name */
	const char *name; /* "": launched by nothing that is known */
	bool is_operator;
	bool is_moved; /* the path is that of the second run */
	double count[2], device_ns[2], host_ns[2];
	const char *shapes[2]; /* input dimensions that took most: JSON text; "": not known */
	uint32_t first_kernel, kernel_count;
};

/* Of a side, per step and rank. */
struct tree_diff_side {
	double steps; /* and ranks: what figures were divided by; 0: ranks alone */
	double step_ns, device_ns, busy_ns, works;
	uint64_t ranks;
};

struct tree_diff {
	struct tree_diff_side sides[2];
	bool per_step;
	bool has_device_work; /* rows are ordered by its change; else by that of threads' time */
	ARRAY_OF(struct tree_diff_row) rows;       /* the largest change first */
	ARRAY_OF(struct tree_diff_kernel) kernels; /* by row, the largest change first */
	struct intern texts;
};

struct tree_diff_input {
	const struct trace_view *views; /* one of each rank */
	size_t count;
};

/* Returns 0 or -ENOMEM. Names are copies. */
int tree_diff_init(struct tree_diff *diff, const struct tree_diff_input inputs[2]);
void tree_diff_done(struct tree_diff *diff);
#define _cleanup_tree_diff_ _cleanup_(tree_diff_done)

/* After - before, of what rows are ordered by. */
static inline double tree_diff_change(const struct tree_diff *diff, const struct tree_diff_row *row)
{
	return diff->has_device_work ? row->device_ns[1] - row->device_ns[0]
				     : row->host_ns[1] - row->host_ns[0];
}
