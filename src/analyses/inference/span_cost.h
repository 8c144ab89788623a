/* SPDX-License-Identifier: Apache-2.0 */
/* What ran in stretches of time that belong to rows of a table: in phases, layers, components. */
#pragma once

#include "analyses/program/range_finder.h"
#include "analyses/selection.h"
#include "model/model.h"

struct span_cost {
	uint64_t samples; /* of running threads; each counts once in a row */
	/* Work that was launched inside: */
	uint64_t works;
	uint64_t device_busy_ns; /* some of it ran: overlapping work of a device counts once */
};

struct span_set {
	ARRAY_OF(struct range_span) spans; /* `index` is the position here */
	ARRAY_OF(uint32_t) rows;           /* of each span */
};

/* Returns 0 or -ENOMEM. */
int span_set_add(struct span_set *set, uint64_t start_ns, uint64_t end_ns, uint32_t process,
	uint32_t thread, uint32_t row);
void span_set_done(struct span_set *set);
#define _cleanup_span_set_ _cleanup_(span_set_done)

/*
 * Adds to the costs of each row: a sample, or a launch, counts once in each row of which a span
 * lies around it. A thread that has no spans of its own, such as a worker of a pool, counts in
 * those of all threads of its process. Returns 0 or -ENOMEM. `selected`: NULL: all.
 */
int span_costs(const struct span_set *set, const struct model *model,
	const struct selected *selected, struct span_cost *costs);

/* How much time the spans of one row cover together: that of several at once counts once, of all
 * processes. `row` MODEL_NONE: of all rows. UINT64_MAX without memory. */
uint64_t span_set_covered_ns(const struct span_set *set, uint32_t row);
