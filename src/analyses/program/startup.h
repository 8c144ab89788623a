/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long devices were idle before their first work: from the begin of the first row of a thread,
 * which with --step is the step's, to the start of the device's first work. It is no part of the
 * idle time between work (device/idle.h), and has no cause: nothing says that the device was
 * needed before.
 */
#pragma once

#include "analyses/trace_view.h"

struct startup {
	int64_t idle_ns; /* of all devices of all views, added */
	/* Of all views, the row of the thread that launched the first work which has most time of
	 * its own before it, less its inner rows; view MODEL_NONE: there is none. */
	uint32_t view, row;
	int64_t row_ns;
};

/* Adds those of a view. The first time: {.view = MODEL_NONE}. Returns 0 or -ENOMEM. */
int startup_add(struct startup *startup, const struct trace_view *view, uint32_t index);
