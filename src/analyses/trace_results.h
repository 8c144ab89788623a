/* SPDX-License-Identifier: Apache-2.0 */
/* The analyses of traces that more than one part of a report needs: each is made once, when it is
 * first asked for. */
#pragma once

#include "analyses/definitions.h"
#include "analyses/device/idle_rows.h"
#include "analyses/device/kernels.h"
#include "analyses/device/temporal.h"

struct trace_rank_results {
	struct temporal temporal;
	struct device_idle idle;
	struct launches launches;
	bool has_temporal, has_idle, has_launches;
};

/* Zero-initialise but for the first three. */
struct trace_results {
	const struct trace_definitions *definitions;
	const struct trace_view *views; /* one of each rank, by rank */
	size_t count;
	struct trace_rank_results *ranks; /* NULL: nothing was asked for */
	struct idle_rows idle_rows;
	struct kernels kernels;
	bool has_idle_rows, has_kernels;
};

/* Of the view of this index, or of all together. NULL when memory ran out. */
const struct temporal *trace_results_temporal(struct trace_results *results, size_t index);
const struct device_idle *trace_results_idle(struct trace_results *results, size_t index);
const struct launches *trace_results_launches(struct trace_results *results, size_t index);
const struct idle_rows *trace_results_idle_rows(struct trace_results *results);
const struct kernels *trace_results_kernels(struct trace_results *results);

void trace_results_done(struct trace_results *results);
#define _cleanup_trace_results_ _cleanup_(trace_results_done)
