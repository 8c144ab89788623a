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
	size_t below = (size_t)place;
	double rest = place - (double)below;

	if (below + 1 >= count)
		return values[count - 1];
	return values[below] + (values[below + 1] - values[below]) * rest;
}

static void describe_sorted(struct trace_describe *describe, const double *values, size_t count)
{
	double squares = 0;

	*describe = (struct trace_describe){.count = count};
	for (size_t i = 0; i < count; i++)
		describe->sum += values[i];
	describe->mean = count ? describe->sum / (double)count : (double)NAN;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - describe->mean) * (values[i] - describe->mean);
	describe->deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : (double)NAN;
	describe->least = count ? values[0] : (double)NAN;
	describe->quarter = count ? quantile(values, count, 0.25) : (double)NAN;
	describe->median = count ? quantile(values, count, 0.5) : (double)NAN;
	describe->three_quarters = count ? quantile(values, count, 0.75) : (double)NAN;
	describe->most = count ? values[count - 1] : (double)NAN;
}

void trace_describe(struct trace_describe *ret_describe, double *values, size_t count)
{
	if (count)
		qsort(values, count, sizeof(*values), compare_values);
	describe_sorted(ret_describe, values, count);
}

int trace_describe_ns(struct trace_describe *ret_describe, const int64_t *values, size_t count)
{
	_cleanup_free_ double *sorted = malloc((count + 1) * sizeof(*sorted));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));

	if (!sorted || !order || trace_order_stable(values, order, count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = (double)values[order[i]];
	describe_sorted(ret_describe, sorted, count);
	return 0;
}
