/* SPDX-License-Identifier: Apache-2.0 */
/* What a table says of many values: as pandas' describe() has it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
