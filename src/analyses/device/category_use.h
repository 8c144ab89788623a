/* SPDX-License-Identifier: Apache-2.0 */
/* What device work of each category (device/category.h) took, of all ranks together. */
#pragma once

#include "analyses/device/category.h"

struct category_row {
	enum op_category category;
	uint64_t works;
	int64_t total_ns; /* sum of durations */
	/* The name that took most of it, and how much. */
	const char *name;
	int64_t name_ns;
	uint64_t names; /* different ones */
	/* Of several ranks: where it took least, 0 where one has none, and most. */
	int64_t least_ns, most_ns;
	uint32_t least_rank, most_rank;
};

struct category_use {
	struct category_row
		rows[OP_CATEGORY_MAX]; /* most time first; those without work come last */
	size_t count;                  /* with work */
	int64_t total_ns;
};

/* Names are the traces'. Returns 0 or -ENOMEM. */
int category_use_init(struct category_use *use, const struct trace_view *views, size_t count);
