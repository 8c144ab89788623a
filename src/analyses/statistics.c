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
