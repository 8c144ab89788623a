/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/trace_results.h"

#include <stdlib.h>

static struct trace_rank_results *rank_of(struct trace_results *results, size_t index)
{
	if (!results->ranks)
		results->ranks = calloc(results->count + 1, sizeof(*results->ranks));
	return results->ranks ? &results->ranks[index] : NULL;
}

const struct temporal *trace_results_temporal(struct trace_results *results, size_t index)
{
	struct trace_rank_results *rank = rank_of(results, index);

	if (!rank)
		return NULL;
	if (!rank->has_temporal)
		rank->has_temporal = temporal_init(&rank->temporal, &results->views[index]) == 0;
	return rank->has_temporal ? &rank->temporal : NULL;
}

const struct device_idle *trace_results_idle(struct trace_results *results, size_t index)
{
	struct trace_rank_results *rank = rank_of(results, index);

	if (!rank)
		return NULL;
	if (!rank->has_idle)
		rank->has_idle =
			results->definitions->idle(&rank->idle, &results->views[index]) == 0;
	return rank->has_idle ? &rank->idle : NULL;
}

const struct launches *trace_results_launches(struct trace_results *results, size_t index)
{
	struct trace_rank_results *rank = rank_of(results, index);

	if (!rank)
		return NULL;
	if (!rank->has_launches)
		rank->has_launches = results->definitions->launches(
					     &rank->launches, &results->views[index]) == 0;
	return rank->has_launches ? &rank->launches : NULL;
}

const struct idle_rows *trace_results_idle_rows(struct trace_results *results)
{
	int r = 0;

	if (results->has_idle_rows)
		return &results->idle_rows;
	results->idle_rows.by_device = results->count == 1;
	for (size_t i = 0; r == 0 && i < results->count; i++) {
		const struct device_idle *idle = trace_results_idle(results, i);

		r = idle ? idle_rows_add(&results->idle_rows, &results->views[i], idle) : -1;
	}
	if (r < 0) {
		idle_rows_done(&results->idle_rows);
		return NULL;
	}
	idle_rows_finish(&results->idle_rows);
	results->has_idle_rows = true;
	return &results->idle_rows;
}

const struct kernels *trace_results_kernels(struct trace_results *results)
{
	if (!results->has_kernels)
		results->has_kernels =
			kernels_init(&results->kernels, results->views, results->count) == 0;
	return results->has_kernels ? &results->kernels : NULL;
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
