/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of another tool's trace say of themselves, filled into the model that has its
 * rows: each rank is a process, its profiler steps (ProfilerStep#N) are steps, its other
 * annotations ranges, and the device work whose launch is known lies on the threads that launched
 * it. There are no samples. So the analyses of steps, ranges and ranks answer for traces, too.
 */
#pragma once

#include "analyses/trace_view.h"

/*
 * One view of each rank. Times are since the first row of all. Does nothing where the model has
 * processes: of a recording, or filled before. Returns 0 or -ENOMEM.
 */
int trace_programs_fill(struct model *model, const struct trace_view *views, size_t count);
