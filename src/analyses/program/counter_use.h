/* SPDX-License-Identifier: Apache-2.0 */
/* What the counters of programs were. */
#pragma once

#include "base/array.h"
#include "model/model.h"

/* The values of one name in one process; those that are no numbers are counted only. */
struct counter_row {
	const char *name;
	uint32_t process; /* index */
	uint64_t count, not_numbers;
	double minimum, maximum, mean, last; /* of the numbers, when there are any */
};

struct counter_use {
	ARRAY_OF(struct counter_row) rows; /* by process and name */
};

/* Returns 0 or -ENOMEM. Strings are the model's. */
int counter_use_init(struct counter_use *use, const struct model *model);
void counter_use_done(struct counter_use *use);
#define _cleanup_counter_use_ _cleanup_(counter_use_done)
