/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators and the device work that they launch, with the delays. Work belongs to the innermost
 * operator of the thread that encloses its launch,
 * or, of a graph's replay, the call that captured it: then there is one for each replay, and its
 * work waits from the graph's launch on.
 */
#pragma once

#include "analyses/trace_view.h"
#include "base/map.h"

/* Operators of one name that launched the same work in the same order. */
struct trace_ops_row {
	uint32_t name;         /* of the operator; 0: no operator encloses the launch */
	uint32_t first, works; /* names of the work: items of `sequences` */
	uint64_t count;        /* of operators; launches without one are one each */
	int64_t work_ns;       /* device time, sum */
	/* Sums: from the operator's begin to its first launch, and from there to the work's. */
	int64_t launch_delay_ns, work_delay_ns;
};

struct trace_ops {
	ARRAY_OF(struct trace_ops_row) rows; /* most device time first */
	ARRAY_OF(uint32_t) sequences;        /* strings */
};

/* Returns 0 or -ENOMEM. */
int trace_ops_init(struct trace_ops *ops, const struct trace_view *view);

/* What another tool may define otherwise; NULL: what trace_ops_init() has. */
struct trace_ops_definition {
	bool (*is_operator)(const char *name);
	bool (*is_launch)(const char *name); /* of calls in operators: the others do not count */
	int (*compare)(const struct trace_ops_row *a, const struct trace_ops_row *b); /* rows */
};
int trace_ops_init_as(struct trace_ops *ops, const struct trace_view *view,
	const struct trace_ops_definition *definition);
void trace_ops_done(struct trace_ops *ops);
#define _cleanup_trace_ops_ _cleanup_(trace_ops_done)
