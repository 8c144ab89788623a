/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/inference/spread.h"

#include <math.h>
#include <stdlib.h>

static int compare_values(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static double percentile(const struct spread_values *sorted, size_t percent)
{
	return sorted->items.items[(sorted->items.count * percent + 99) / 100 - 1];
}

struct spread spread_of(struct spread_values *values)
{
	size_t count = values->items.count;
	double sum = 0;

	if (!count)
		return (struct spread){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	qsort(values->items.items, count, sizeof(*values->items.items), compare_values);
	array_foreach (&values->items, value)
		sum += *value;
	return (struct spread){
		.count = count,
		.mean = sum / (double)count,
		.minimum = values->items.items[0],
		.p50 = percentile(values, 50),
		.p90 = percentile(values, 90),
		.p95 = percentile(values, 95),
		.p99 = percentile(values, 99),
		.maximum = values->items.items[count - 1],
	};
}
