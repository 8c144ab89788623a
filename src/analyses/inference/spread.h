/* SPDX-License-Identifier: Apache-2.0 */
/* What many values are like: their mean and percentiles. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

struct spread_values {
	ARRAY_OF(double) items;
};

/* Without a value, all but `count` are NaN. */
struct spread {
	uint64_t count;
	double mean, minimum, p50, p90, p95, p99, maximum;
};

/*
 * Sorts the values. Percentile p is by nearest rank: the smallest value that at least p % of all do
 * not exceed, so that it is one that was measured.
 */
struct spread spread_of(struct spread_values *values);
