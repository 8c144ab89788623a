/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The windows of a trace, and what happened in each: the rows that an export of a recording has of
 * its windows, or the one in which PyTorch's profiler writes the time that it traced. (Each cycle
 * of that profiler's schedule is a trace of its own, with a window.)
 */
#pragma once

#include "analyses/program/window_use.h"
#include "analyses/trace_view.h"

struct trace_windows {
	/* By begin, since the first row. Those that begin before the one before them has ended are
	 * left out. Labels are the trace's. */
	ARRAY_OF(struct model_window) windows;
	struct window_use use; /* one row for each; without samples */
	bool is_recorded;      /* sonde's: what opened and closed them is known */
};

/* The start of the first row of all views, in ns since the epoch of their base. */
uint64_t trace_windows_first_ns(const struct trace_view *views, size_t count);

/* `first_ns`: see above. Returns 0 or -ENOMEM. */
int trace_windows_init(
	struct trace_windows *windows, const struct trace_view *view, uint64_t first_ns);
void trace_windows_done(struct trace_windows *windows);
#define _cleanup_trace_windows_ _cleanup_(trace_windows_done)
