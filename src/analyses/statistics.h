/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summaries of many values, and the tests behind "significantly". A median is one thing everywhere:
 * the value in the middle, of two in the middle their mean. Other quantiles are two: HTA's figures
 * are pandas', which lie between values, and of steps and requests they are times that were
 * measured.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

/* ---- quantiles between values ---- */

/* As pandas' describe() has it. */
struct trace_describe {
	uint64_t count;
	double sum, mean;
	double deviation; /* of the sample, with count - 1; NaN of one value */
	/* Quantiles between two values are interpolated linearly. NaN of none, as is the mean. */
	double least, quarter, median, three_quarters, p90, p99, most;
};

/* Sorts the values. */
void trace_describe(struct trace_describe *ret_describe, double *values, size_t count);
/* The same of times; quantiles of many are found in linear time. Returns 0 or -ENOMEM. */
int trace_describe_ns(struct trace_describe *ret_describe, const int64_t *values, size_t count);

/* ---- medians, and percentiles that are values ---- */

/* Of `count` > 0 sorted values: of two in the middle their mean. */
static inline double statistics_median(const double *sorted, size_t count)
{
	double low = sorted[(count - 1) / 2], high = sorted[count / 2];

	return low + (high - low) / 2;
}

/* The same of times, rounded down. */
static inline uint64_t statistics_median_ns(const uint64_t *sorted, size_t count)
{
	uint64_t low = sorted[(count - 1) / 2], high = sorted[count / 2];

	return low + (high - low) / 2;
}

/*
 * The place of percentile p in `count` > 0 sorted values, by nearest rank: that of the smallest
 * value that at least p % of all do not exceed, so that it is one that was measured.
 */
static inline size_t statistics_rank(size_t count, size_t percent)
{
	return (count * percent + 99) / 100 - 1;
}

struct spread_values {
	ARRAY_OF(double) items;
};

/* Without a value, all but `count` are NaN. */
struct spread {
	uint64_t count;
	double mean, minimum, p50, p90, p95, p99, maximum;
};

/* Sorts the values. p50 is the median; the other percentiles are by nearest rank. */
struct spread spread_of(struct spread_values *values);
/* The same of times in ns: the median is whole, as times are. */
struct spread spread_of_times(struct spread_values *values);

/* ---- medians of many rows ---- */

/* The rows' values are collected first. */
struct medians {
	ARRAY_OF(struct medians_value {
		uint32_t row;
		int64_t value;
	})
	values;
};

/* Returns 0 or -ENOMEM. */
int medians_add(struct medians *medians, uint32_t row, int64_t value);
/* After the last one: sorts them. Returns 0 or -ENOMEM. */
int medians_finish(struct medians *medians);
/* Of two in the middle their mean; 0 of a row without values. */
int64_t medians_of(const struct medians *medians, uint32_t row);
void medians_done(struct medians *medians);

/* ---- tests ---- */

/*
 * Two-sided p-value that two proportions are equal, k1 of n1 and k2 of n2, with the variance
 * pooled:
 *
 *   p = (k1 + k2) / (n1 + n2)
 *
 *   z = (k2 / n2 - k1 / n1) / sqrt(p (1 - p) (1 / n1 + 1 / n2))
 *
 *   P = erfc(|z| / sqrt(2))
 *
 * (NIST/SEMATECH e-Handbook of Statistical Methods, 7.3.3). 1 when either is empty or nothing
 * varies.
 */
double statistics_two_proportions(uint64_t k1, uint64_t n1, uint64_t k2, uint64_t n2);

/*
 * Two-sided p-value that two Poisson counts measure the same quantity, k1 w1 and k2 w2, w > 0 being
 * what one count stands for. If they do, then given n = k1 + k2, k2 is binomial with probability
 * s = w1 / (w1 + w2); with the normal approximation
 *
 *   z = (k2 - n s) / sqrt(n s (1 - s))
 *
 *   P = erfc(|z| / sqrt(2))
 *
 * (the conditional test of J. Przyborowski and H. Wilenski, Biometrika 31 (1940) 313-323). 1 when
 * both counts are 0.
 */
double statistics_two_counts(uint64_t k1, double w1, uint64_t k2, double w2);

/*
 * The square of the standard error of the mean of `count` > 1 values in order of time, by the means
 * of twenty batches (fewer, where there are fewer values), so that values that are close in time
 * may depend on one another:
 *
 *   sum((batch mean - mean of batch means)²) / (batches (batches - 1))
 *
 * (A. M. Law and W. D. Kelton, Simulation Modeling and Analysis, "batch means").
 */
double statistics_batch_means(const double *values, size_t count);

/*
 * Two-sided p-value that two means with these squares of standard errors are of the same quantity,
 * by the normal approximation: z = (mean2 - mean1) / sqrt(error1² + error2²). NaN where one is.
 */
double statistics_two_means(
	double mean1, double squared_error1, double mean2, double squared_error2);

/*
 * Two-sided p-value that the means of two samples are of the same quantity, their variances (with
 * count - 1) unlike:
 *
 *   t = (mean2 - mean1) / sqrt(v1 / n1 + v2 / n2)
 *
 *   ν = (v1 / n1 + v2 / n2)² / ((v1 / n1)² / (n1 - 1) + (v2 / n2)² / (n2 - 1))
 *
 * (B. L. Welch, Biometrika 34 (1947) 28-35). NaN where a count is below 2.
 */
double statistics_welch(double mean1, double variance1, size_t count1, double mean2,
	double variance2, size_t count2);

/*
 * Replaces p-values by the smallest false discovery rate at which each would be called significant;
 * with m of them, p sorted rising:
 *
 *   q(i) = min over j >= i of m p(j) / j
 *
 * (Y. Benjamini and Y. Hochberg, J. R. Statist. Soc. B 57 (1995) 289-300). Returns 0 or -ENOMEM.
 */
int statistics_benjamini_hochberg(double *p_values, size_t count);
