/* SPDX-License-Identifier: Apache-2.0 */
/* qsort() of what mostly is in its order: then it is only looked at. */
#pragma once

#include <stdlib.h>

typedef int sort_compare(const void *left, const void *right);

static inline void sort_unless_sorted(void *items, size_t count, size_t size, sort_compare *compare)
{
	const char *bytes = items;

	for (size_t i = 1; i < count; i++) {
		if (compare(bytes + (i - 1) * size, bytes + i * size) <= 0)
			continue;
		qsort(items, count, size, compare);
		return;
	}
}
