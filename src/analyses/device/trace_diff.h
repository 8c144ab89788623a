/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed from one trace, or folder of ranks, to another: how often each operator, call and
 * kernel ran and for how long, by name. Times are those of rows with what lies in them. With
 * views that are hta_compatible it is HTA's compare_traces() of the first rank's first step.
 */
#pragma once

#include "analyses/trace_view.h"
#include "base/array.h"
#include "base/map.h"

enum trace_diff_kind {
	TRACE_DIFF_OPERATOR,
	TRACE_DIFF_CALL, /* of a runtime or driver */
	TRACE_DIFF_ANNOTATION,
	TRACE_DIFF_PYTHON,
	TRACE_DIFF_DEVICE, /* kernels, copies and fills */
	TRACE_DIFF_OTHER,
	TRACE_DIFF_ANY, /* HTA knows names alone */
	TRACE_DIFF_KIND_MAX,
};

const char *trace_diff_kind_name(enum trace_diff_kind kind);

enum trace_diff_change {
	TRACE_DIFF_ADDED,
	TRACE_DIFF_DELETED,
	TRACE_DIFF_INCREASED, /* occurs more often */
	TRACE_DIFF_DECREASED,
	TRACE_DIFF_UNCHANGED,
	TRACE_DIFF_CHANGE_MAX,
};

const char *trace_diff_change_name(enum trace_diff_change change);

struct trace_diff_row {
	uint32_t name; /* in names */
	enum trace_diff_kind kind;
	uint64_t count[2]; /* before, after */
	int64_t time_ns[2];
};

struct trace_diff_side {
	const struct trace_view *views; /* one of each rank */
	size_t count;
};

struct trace_diff {
	ARRAY_OF(struct trace_diff_row) rows; /* by |change of time| falling, then by name */
	uint64_t steps[2];                    /* profiler steps of the first rank */
	struct intern names;
};

/*
 * Sides are before and after. Returns 0, -ENODATA when a side has no profiler step and HTA's first
 * one is asked for, or -ENOMEM.
 */
int trace_diff_init(struct trace_diff *diff, const struct trace_diff_side sides[2]);
void trace_diff_done(struct trace_diff *diff);
#define _cleanup_trace_diff_ _cleanup_(trace_diff_done)

enum trace_diff_change trace_diff_change_of(const struct trace_diff_row *row);
