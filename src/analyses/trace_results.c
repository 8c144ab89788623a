/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/trace_results.h"

#include <stdlib.h>

static struct trace_rank_results *rank_of(struct trace_results *results, size_t index)
{
	struct trace_rank_results *ranks;

	pthread_mutex_lock(&results->lock);
	if (!results->ranks)
		results->ranks = calloc(results->count + 1, sizeof(*results->ranks));
	ranks = results->ranks;
	pthread_mutex_unlock(&results->lock);
	return ranks ? &ranks[index] : NULL;
}

/* True: it is the caller's to make, who says with end_making() how that went. */
static bool begin_making(struct trace_results *results, enum trace_result_state *state)
{
	bool is_ours;

	pthread_mutex_lock(&results->lock);
	while (*state == TRACE_RESULT_IS_BEING_MADE)
		pthread_cond_wait(&results->changed, &results->lock);
	is_ours = *state == TRACE_RESULT_NONE;
	if (is_ours)
		*state = TRACE_RESULT_IS_BEING_MADE;
	pthread_mutex_unlock(&results->lock);
	return is_ours;
}

static bool end_making(struct trace_results *results, enum trace_result_state *state, int status)
{
	pthread_mutex_lock(&results->lock);
	*state = status < 0 ? TRACE_RESULT_NONE : TRACE_RESULT_IS_THERE;
	pthread_cond_broadcast(&results->changed);
	pthread_mutex_unlock(&results->lock);
	return status == 0;
}

const struct temporal *trace_results_temporal(struct trace_results *results, size_t index)
{
	struct trace_rank_results *rank = rank_of(results, index);

	if (!rank)
		return NULL;
	if (begin_making(results, &rank->temporal_state) &&
		!end_making(results, &rank->temporal_state,
			temporal_init(&rank->temporal, &results->views[index])))
		return NULL;
	return &rank->temporal;
}

const struct device_idle *trace_results_idle(struct trace_results *results, size_t index)
{
	struct trace_rank_results *rank = rank_of(results, index);

	if (!rank)
		return NULL;
	if (begin_making(results, &rank->idle_state) &&
		!end_making(results, &rank->idle_state,
			results->definitions->idle(&rank->idle, &results->views[index])))
		return NULL;
	return &rank->idle;
}

const struct launches *trace_results_launches(struct trace_results *results, size_t index)
{
	struct trace_rank_results *rank = rank_of(results, index);

	if (!rank)
		return NULL;
	if (begin_making(results, &rank->launches_state) &&
		!end_making(results, &rank->launches_state,
			results->definitions->launches(&rank->launches, &results->views[index])))
		return NULL;
	return &rank->launches;
}

static int make_idle_rows(struct trace_results *results)
{
	int r = 0;

	results->idle_rows.by_device = results->count == 1;
	for (size_t i = 0; r == 0 && i < results->count; i++) {
		const struct device_idle *idle = trace_results_idle(results, i);

		r = idle ? idle_rows_add(&results->idle_rows, &results->views[i], idle) : -1;
	}
	if (r < 0)
		idle_rows_done(&results->idle_rows);
	else
		idle_rows_finish(&results->idle_rows);
	return r;
}

const struct idle_rows *trace_results_idle_rows(struct trace_results *results)
{
	if (begin_making(results, &results->idle_rows_state) &&
		!end_making(results, &results->idle_rows_state, make_idle_rows(results)))
		return NULL;
	return &results->idle_rows;
}

const struct kernels *trace_results_kernels(struct trace_results *results)
{
	if (begin_making(results, &results->kernels_state) &&
		!end_making(results, &results->kernels_state,
			kernels_init(&results->kernels, results->views, results->count)))
		return NULL;
	return &results->kernels;
}

void trace_results_done(struct trace_results *results)
{
	for (size_t i = 0; results->ranks && i < results->count; i++) {
		temporal_done(&results->ranks[i].temporal);
		device_idle_done(&results->ranks[i].idle);
		launches_done(&results->ranks[i].launches);
	}
	free(results->ranks);
	results->ranks = NULL;
	idle_rows_done(&results->idle_rows);
	kernels_done(&results->kernels);
}
