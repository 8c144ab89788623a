/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of traces say of themselves, as a model: each rank is a process, its profiler
 * steps (ProfilerStep#N) are steps, its other annotations ranges, and the device work whose launch
 * is known lies on the threads that launched it. There are no samples. So the analyses of steps,
 * ranges and ranks answer for traces, too.
 */
#pragma once

#include "analyses/trace_view.h"

/* One view of each rank. Times are since the first row of all. Returns 0 or -ENOMEM. */
int trace_programs_new(struct model **ret_model, const struct trace_view *views, size_t count);
