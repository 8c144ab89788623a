/* SPDX-License-Identifier: Apache-2.0 */
/* The analyses of traces that more than one part of a report needs: each is made once, when it is
 * first asked for. Threads may ask at the same time: they wait for what another one makes. */
#pragma once

#include <pthread.h>

#include "analyses/definitions.h"
#include "analyses/device/idle_rows.h"
#include "analyses/device/kernels.h"
#include "analyses/device/temporal.h"

enum trace_result_state { TRACE_RESULT_NONE, TRACE_RESULT_IS_BEING_MADE, TRACE_RESULT_IS_THERE };

struct trace_rank_results {
	struct temporal temporal;
	struct device_idle idle;
	struct launches launches;
	enum trace_result_state temporal_state, idle_state, launches_state;
};

/* Zero-initialise but for the first three: glibc's and musl's locks are then open. */
struct trace_results {
	const struct trace_definitions *definitions;
	const struct trace_view *views; /* one of each rank, by rank */
	size_t count;
	struct trace_rank_results *ranks; /* NULL: nothing was asked for */
	struct idle_rows idle_rows;
	struct kernels kernels;
	enum trace_result_state idle_rows_state, kernels_state;
	pthread_mutex_t lock; /* of the states */
	pthread_cond_t changed;
};

/* Of the view of this index, or of all together. NULL when memory ran out. */
const struct temporal *trace_results_temporal(struct trace_results *results, size_t index);
const struct device_idle *trace_results_idle(struct trace_results *results, size_t index);
const struct launches *trace_results_launches(struct trace_results *results, size_t index);
const struct idle_rows *trace_results_idle_rows(struct trace_results *results);
const struct kernels *trace_results_kernels(struct trace_results *results);

void trace_results_done(struct trace_results *results);
#define _cleanup_trace_results_ _cleanup_(trace_results_done)
