/* SPDX-License-Identifier: Apache-2.0 */
/* The medians of many rows' values, which are collected first. */
#pragma once

#include <stdint.h>

#include "base/array.h"

struct medians {
	ARRAY_OF(struct medians_value {
		uint32_t row;
		int64_t value;
	})
	values;
};

/* Returns 0 or -ENOMEM. */
int medians_add(struct medians *medians, uint32_t row, int64_t value);
/* After the last one: sorts them. */
void medians_finish(struct medians *medians);
/* Of two in the middle their mean; 0 of a row without values. */
int64_t medians_of(const struct medians *medians, uint32_t row);
void medians_done(struct medians *medians);
