/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/trace_describe.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/trace_order.h"
#include "base/macros.h"

static int compare_values(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

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
	describe->median = quantile(values, count, 0.5);
	describe->three_quarters = quantile(values, count, 0.75);
	describe->p90 = quantile(values, count, 0.9);
	describe->p99 = quantile(values, count, 0.99);
	describe->most = values[count - 1];
}

void trace_describe(struct trace_describe *ret_describe, double *values, size_t count)
{
	if (count)
		qsort(values, count, sizeof(*values), compare_values);
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
