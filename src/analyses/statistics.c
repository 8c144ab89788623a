/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyses/trace_order.h"
#include "base/macros.h"

static int compare_values(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static void sort(double *values, size_t count)
{
	if (count)
		qsort(values, count, sizeof(*values), compare_values);
}

/* ---- quantiles between values ---- */

/* Of sorted values: that at `part` of the way from the first to the last. */
static double quantile(const double *values, size_t count, double part)
{
	double place = part * (double)(count - 1);
	size_t below = MIN((size_t)place, count - 1), above = MIN(below + 1, count - 1);

	return values[below] + (values[above] - values[below]) * (place - (double)below);
}

static void describe_sorted(struct trace_describe *describe, const double *values, size_t count)
{
	const double none = (double)NAN;
	double squares = 0;

	*describe =
		(struct trace_describe){0, 0, none, none, none, none, none, none, none, none, none};
	if (!count)
		return;
	describe->count = count;
	for (size_t i = 0; i < count; i++)
		describe->sum += values[i];
	describe->mean = describe->sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - describe->mean) * (values[i] - describe->mean);
	if (count > 1)
		describe->deviation = sqrt(squares / (double)(count - 1));
	describe->least = values[0];
	describe->quarter = quantile(values, count, 0.25);
	describe->median = statistics_median(values, count);
	describe->three_quarters = quantile(values, count, 0.75);
	describe->p90 = quantile(values, count, 0.9);
	describe->p99 = quantile(values, count, 0.99);
	describe->most = values[count - 1];
}

void trace_describe(struct trace_describe *ret_describe, double *values, size_t count)
{
	sort(values, count);
	describe_sorted(ret_describe, values, count);
}

int trace_describe_ns(struct trace_describe *ret_describe, const int64_t *values, size_t count)
{
	_cleanup_free_ double *sorted = calloc(count + 1, sizeof(*sorted));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));

	if (!sorted || !order || trace_order_stable(values, order, count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = (double)values[order[i]];
	describe_sorted(ret_describe, sorted, count);
	return 0;
}

/* ---- medians, and percentiles that are values ---- */

struct spread spread_of(struct spread_values *values)
{
	const double *items = values->items.items;
	size_t count = values->items.count;
	double sum = 0;

	if (!count)
		return (struct spread){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	sort(values->items.items, count);
	array_foreach (&values->items, value)
		sum += *value;
	return (struct spread){
		.count = count,
		.mean = sum / (double)count,
		.minimum = items[0],
		.p50 = statistics_median(items, count),
		.p90 = items[statistics_rank(count, 90)],
		.p95 = items[statistics_rank(count, 95)],
		.p99 = items[statistics_rank(count, 99)],
		.maximum = items[count - 1],
	};
}

struct spread spread_of_times(struct spread_values *values)
{
	struct spread spread = spread_of(values);

	spread.p50 = floor(spread.p50);
	return spread;
}

/* ---- medians of many rows ---- */

int medians_add(struct medians *medians, uint32_t row, int64_t value)
{
	return array_append(&medians->values, (struct medians_value){row, value});
}

static int64_t value_of(const void *item)
{
	return ((const struct medians_value *)item)->value;
}

static int64_t row_of(const void *item)
{
	return ((const struct medians_value *)item)->row;
}

int medians_finish(struct medians *medians)
{
	struct medians_value *items = medians->values.items;
	size_t count = medians->values.count;
	int r = trace_order_items(items, count, sizeof(*items), value_of, trace_order_stable);

	return r ?: trace_order_items(items, count, sizeof(*items), row_of, trace_order_stable);
}

static size_t first_of(const struct medians *medians, uint64_t row)
{
	size_t first = 0, last = medians->values.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (medians->values.items[middle].row < row)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

int64_t medians_of(const struct medians *medians, uint32_t row)
{
	size_t first = first_of(medians, row), end = first_of(medians, (uint64_t)row + 1);
	int64_t low, high;

	if (first == end)
		return 0;
	low = medians->values.items[first + (end - first - 1) / 2].value;
	high = medians->values.items[first + (end - first) / 2].value;
	return low + (high - low) / 2;
}

void medians_done(struct medians *medians)
{
	array_done(&medians->values);
}

/* ---- tests ---- */

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

#define BETA_TERMS 300
#define BETA_TINY  1e-300

/* A term of the continued fraction's evaluation, from the one before. */
static void add_beta_term(double term, double *c, double *d, double *product)
{
	*d = 1 + term * *d;
	*c = 1 + term / *c;
	*d = 1 / (fabs(*d) < BETA_TINY ? BETA_TINY : *d);
	*c = fabs(*c) < BETA_TINY ? BETA_TINY : *c;
	*product *= *c * *d;
}

/*
 * The continued fraction of the incomplete beta function (NIST DLMF 8.17.22), for
 * x < (a + 1) / (a + b + 2).
 */
static double beta_fraction(double x, double a, double b)
{
	double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), product = d;

	for (int m = 1; m < BETA_TERMS; m++) {
		double before = product;

		add_beta_term(m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), &c, &d, &product);
		add_beta_term(-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), &c, &d,
			&product);
		if (fabs(product - before) < 1e-14 * fabs(product))
			break;
	}
	return product;
}

/* The regularized incomplete beta function. */
static double beta_share(double x, double a, double b)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(1 - x, b, a) / b;
}

double statistics_welch(double mean1, double variance1, size_t count1, double mean2,
	double variance2, size_t count2)
{
	double error1, error2, squared, freedom;

	if (count1 < 2 || count2 < 2)
		return NAN;
	error1 = variance1 / (double)count1;
	error2 = variance2 / (double)count2;
	if (mean1 == mean2 || error1 + error2 <= 0)
		return mean1 == mean2 ? 1 : 0;
	squared = (mean2 - mean1) * (mean2 - mean1) / (error1 + error2);
	freedom = (error1 + error2) * (error1 + error2) /
		  (error1 * error1 / (double)(count1 - 1) + error2 * error2 / (double)(count2 - 1));
	return beta_share(freedom / (freedom + squared), freedom / 2, 0.5);
}

static int compare_p_values(const void *left, const void *right, void *context)
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
	qsort_r(order, count, sizeof(*order), compare_p_values, p_values);
	for (size_t rank = count; rank > 0; rank--) {
		double *p = &p_values[order[rank - 1]];

		smallest = fmin(smallest, *p * (double)count / (double)rank);
		*p = smallest;
	}
	return 0;
}
