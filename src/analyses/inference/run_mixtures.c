/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtures of experts beside runs of dense models. */
#include "analyses/inference/runs.h"

#include <string.h>

static bool is_mixture(const struct run *run)
{
	return run->labels[RUN_EXPERTS] > 1;
}

static bool is_comparable(const struct run *mixture, const struct run *dense)
{
	return !is_mixture(dense) && strcmp(mixture->precision, dense->precision) == 0 &&
	       run_labels_are_equal(mixture->labels[RUN_BATCH], dense->labels[RUN_BATCH]) &&
	       run_labels_are_equal(mixture->labels[RUN_CONTEXT], dense->labels[RUN_CONTEXT]);
}

/* How far apart two sizes are; those that are not known are farther than all others. */
static double distance(const struct run *a, const struct run *b)
{
	double ratio = fabs(log(run_size(a) / run_size(b)));

	return isnan(ratio) ? INFINITY : ratio;
}

static uint32_t find_dense(const struct runs *runs, const struct run *mixture)
{
	uint32_t best = MODEL_NONE;

	for (uint32_t i = 0; i < runs->items.count; i++) {
		const struct run *run = &runs->items.items[i];

		if (is_comparable(mixture, run) &&
			(best == MODEL_NONE || distance(mixture, run) <
						       distance(mixture, &runs->items.items[best])))
			best = i;
	}
	return best;
}

int runs_find_mixtures(struct run_comparison *comparison, const struct runs *runs)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < runs->items.count; i++) {
		const struct run *run = &runs->items.items[i];
		struct run_mixture mixture = {.mixture = i, .dense = MODEL_NONE};

		if (is_mixture(run))
			mixture.dense = find_dense(runs, run);
		if (mixture.dense == MODEL_NONE)
			continue;
		for (int k = 0; k < RUN_FIGURE_MAX; k++)
			mixture.ratios[k] =
				run->figures[k] / runs->items.items[mixture.dense].figures[k];
		r = array_append(&comparison->mixtures, mixture);
	}
	return r;
}
