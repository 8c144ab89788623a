/* SPDX-License-Identifier: Apache-2.0 */
/* What the counters of programs were. */
#pragma once

#include "analyses/trace_view.h"

/* The values of one name in one process; those that are no numbers are counted only. */
struct counter_row {
	const char *name;
	const char *series; /* of several of that name, in a trace; "" else */
	uint32_t pid;       /* 0: not known */
	uint32_t rank;      /* MODEL_NONE: not known */
	int64_t last_ns;
	uint64_t count, not_numbers;
	double minimum, maximum, mean, last; /* of the numbers, when there are any */
	double p95;                          /* by nearest rank */
};

struct counter_use {
	ARRAY_OF(struct counter_row) rows; /* by process and name; those of traces by rank */
};

/* Of a recording, or of another tool's trace the counters of these views. Returns 0 or -ENOMEM.
 * Strings are the model's and the traces'. */
int counter_use_init(struct counter_use *use, const struct model *model,
	const struct trace_view *views, size_t count);
void counter_use_done(struct counter_use *use);
#define _cleanup_counter_use_ _cleanup_(counter_use_done)
