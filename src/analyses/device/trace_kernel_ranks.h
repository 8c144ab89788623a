/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by name of several ranks as one table, with how the ranks differ. */
#pragma once

#include "analyses/device/trace_kernels.h"

struct trace_kernel_ranks_row {
	const char *name;
	enum trace_kind kind;
	enum communication_evidence evidence; /* of communication: of the first */
	uint32_t ranks;                       /* that have it */
	uint64_t count;
	int64_t total_ns, least_ns, most_ns;
	int64_t median_ns;
	double mean_ns;
	double deviation_ns;    /* of the sample, with count - 1; 0 of one */
	int64_t least_total_ns; /* of the rank where it took least; 0 where one has none */
	int64_t most_total_ns;  /* of the rank where it took most */
	uint32_t least_rank, most_rank;
};

struct trace_kernel_ranks {
	ARRAY_OF(struct trace_kernel_ranks_row) rows; /* most time first */
	int64_t total_ns;
};

/* Device work by name; with `annotations` those of the GPU's timeline. Returns 0 or -ENOMEM. */
int trace_kernel_ranks_init(struct trace_kernel_ranks *ranks, const struct trace_view *views,
	size_t count, bool annotations);
void trace_kernel_ranks_done(struct trace_kernel_ranks *ranks);
#define _cleanup_trace_kernel_ranks_ _cleanup_(trace_kernel_ranks_done)
