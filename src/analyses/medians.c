/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/medians.h"

#include <errno.h>
#include <stdlib.h>

int medians_add(struct medians *medians, uint32_t row, int64_t value)
{
	return array_append(&medians->values, (struct medians_value){row, value});
}

static int compare_values(const void *left, const void *right)
{
	const struct medians_value *a = left, *b = right;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

void medians_finish(struct medians *medians)
{
	if (medians->values.count)
		qsort(medians->values.items, medians->values.count, sizeof(*medians->values.items),
			compare_values);
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
