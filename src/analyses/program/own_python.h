/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long threads were in Python functions of the user's own, by the rows that with_stack=True
 * writes: time in such a function, and in all that it calls but for other such functions.
 */
#pragma once

#include "analyses/trace_view.h"
#include "base/map.h"

/* Zero-initialise. */
struct own_pythons {
	ARRAY_OF(struct own_python {
		const char *name; /* a trace's: "train.py(12): main" */
		int64_t time_ns;
	})
	items;             /* most time first, after own_pythons_finish() */
	int64_t thread_ns; /* of the threads that have any, from their first such row to their last
			    */
	struct intern names;
};

/* Adds those of a view, whose trace outlives them. Returns 0 or -ENOMEM. */
int own_pythons_add(struct own_pythons *pythons, const struct trace_view *view);
void own_pythons_finish(struct own_pythons *pythons);
void own_pythons_done(struct own_pythons *pythons);
#define _cleanup_own_pythons_ _cleanup_(own_pythons_done)
