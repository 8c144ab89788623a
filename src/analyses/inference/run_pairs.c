/* SPDX-License-Identifier: Apache-2.0 */
/* Runs beside others: mixtures of experts and dense models, precisions and the widest of them. */
#include "analyses/inference/runs.h"

#include <stdlib.h>
#include <string.h>

struct run_pair run_pair_of(const struct runs *runs, uint32_t run, uint32_t beside)
{
	const struct run *items = runs->items.items;
	struct run_pair pair = {.run = run, .beside = beside};

	for (int i = 0; i < RUN_FIGURE_MAX; i++)
		pair.ratios[i] = items[run].figures[i] / items[beside].figures[i];
	return pair;
}

/* ---- precisions ---- */

unsigned run_precision_bits(const char *precision)
{
	size_t before = strcspn(precision, "0123456789");
	unsigned long bits = strtoul(precision + before, NULL, 10);

	return bits <= 64 ? (unsigned)bits : 0;
}

static uint32_t find_baseline(const struct runs *runs, const struct run_series *series)
{
	uint32_t baseline = MODEL_NONE;
	unsigned widest = 0;

	array_foreach (&series->runs, index) {
		unsigned bits = run_precision_bits(runs->items.items[*index].precision);

		if (bits > widest) {
			widest = bits;
			baseline = *index;
		}
	}
	return baseline;
}

int runs_find_precisions(struct run_comparison *comparison, const struct runs *runs)
{
	int r = 0;

	array_foreach (&comparison->series, series) {
		uint32_t baseline =
			series->by == RUN_LABEL_MAX ? find_baseline(runs, series) : MODEL_NONE;

		for (size_t i = 0; r == 0 && baseline != MODEL_NONE && i < series->runs.count;
			i++) {
			uint32_t run = series->runs.items[i];

			if (run != baseline)
				r = array_append(
					&comparison->precisions, run_pair_of(runs, run, baseline));
		}
	}
	return r;
}

/* ---- mixtures ---- */

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
		uint32_t dense = is_mixture(run) ? find_dense(runs, run) : MODEL_NONE;

		if (dense != MODEL_NONE)
			r = array_append(&comparison->mixtures, run_pair_of(runs, i, dense));
	}
	return r;
}
