/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/macros.h"

static double two_sided(double z)
{
	return erfc(fabs(z) / M_SQRT2);
}

double statistics_two_proportions(uint64_t k1, uint64_t n1, uint64_t k2, uint64_t n2)
{
	double pooled, variance;

	if (!n1 || !n2)
		return 1;
	pooled = ((double)k1 + (double)k2) / ((double)n1 + (double)n2);
	variance = pooled * (1 - pooled) * (1 / (double)n1 + 1 / (double)n2);
	if (variance <= 0)
		return 1;
	return two_sided(((double)k2 / (double)n2 - (double)k1 / (double)n1) / sqrt(variance));
}

double statistics_two_counts(uint64_t k1, double w1, uint64_t k2, double w2)
{
	double n = (double)k1 + (double)k2, share = w1 / (w1 + w2);

	if (n == 0 || !(share > 0 && share < 1))
		return 1;
	return two_sided(((double)k2 - n * share) / sqrt(n * share * (1 - share)));
}

#define BATCHES 20

double statistics_batch_means(const double *values, size_t count)
{
	size_t batches = MIN(count, (size_t)BATCHES);
	double means[BATCHES] = {0}, mean = 0, squares = 0;

	for (size_t i = 0; i < batches; i++) {
		size_t first = count * i / batches, end = count * (i + 1) / batches;

		for (size_t j = first; j < end; j++)
			means[i] += values[j] / (double)(end - first);
		mean += means[i] / (double)batches;
	}
	for (size_t i = 0; i < batches; i++)
		squares += (means[i] - mean) * (means[i] - mean);
	return squares / ((double)batches * (double)(batches - 1));
}

double statistics_two_means(
	double mean1, double squared_error1, double mean2, double squared_error2)
{
	double variance = squared_error1 + squared_error2;

	if (isnan(variance))
		return NAN;
	if (mean1 == mean2)
		return 1;
	return variance > 0 ? two_sided((mean2 - mean1) / sqrt(variance)) : 0;
}

static int compare_values(const void *left, const void *right, void *context)
{
	const double *values = context;
	double a = values[*(const size_t *)left], b = values[*(const size_t *)right];

	return a < b ? -1 : a > b;
}

int statistics_benjamini_hochberg(double *p_values, size_t count)
{
	_cleanup_free_ size_t *order = calloc(count + 1, sizeof(*order));
	double smallest = 1;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order, count, sizeof(*order), compare_values, p_values);
	for (size_t rank = count; rank > 0; rank--) {
		double *p = &p_values[order[rank - 1]];

		smallest = fmin(smallest, *p * (double)count / (double)rank);
		*p = smallest;
	}
	return 0;
}
