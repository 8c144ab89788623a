/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who launched most of some work: the line, where launches have stacks, else the innermost operator
 * or annotation around the launch.
 */
#pragma once

#include "analyses/trace_view.h"

/* Which work: of these kinds (bits), and with short_only what takes less time than its call. */
struct launched_work {
	unsigned kinds;
	bool short_only;
};

struct launched_by {
	uint32_t frame;   /* of the view's recording; MODEL_NONE: not known */
	const char *name; /* of the operator, the trace's; NULL: not known */
	int64_t time_ns;  /* that its work took */
	/* The Python function of the user's own that launched most; NULL: none has rows. */
	const char *python; /* the trace's */
	int64_t python_ns;
	int64_t all_ns; /* that all such work took */
};

/* Returns 0 or -ENOMEM. */
int launched_by_find(struct launched_by *ret_most, const struct trace_view *view,
	const struct launched_work *wanted);
