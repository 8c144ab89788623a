/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of another tool's trace say of themselves, filled into the model that has its
 * rows: each rank is a process, its profiler steps (ProfilerStep#N) are steps, its other
 * annotations ranges, and the device work whose launch is known lies on the threads that launched
 * it. There are no samples. So the analyses of steps, ranges and ranks answer for traces, too.
 *
 * It takes time, so only what needs it calls it, after load_model(): query/report.c where a
 * section is asked for that needs programs (REPORT_NEEDS_PROGRAMS), or where there are several
 * ranks; load/trace_samples.c, with stacks, for tables of samples and for exporters.
 */
#pragma once

#include "analyses/trace_view.h"
#include "analyses/weight_spans.h"

/*
 * One view of each rank. Times are since the first row of all. Does nothing where the model has
 * processes: of a recording, or filled before. Returns 0 or -ENOMEM.
 */
int trace_programs_fill(struct model *model, const struct trace_view *views, size_t count);

/*
 * The same, with stacks (program/trace_stacks.h): all device work has that of its launch; what has
 * no launch in the trace is on the thread of its stream. With `wants_thread_time` there are
 * samples, one for each stretch of time in which a thread was in one row and in no inner one, which
 * count and last its nanoseconds. What the thread ran of them and what it waited a trace does not
 * tell. `idle`, where it is not NULL, gets the time that devices were idle, by what the thread was
 * in that launched the next work; `held` what was in use of devices' memory at their peaks, by what
 * the thread was in that allocated it.
 */
struct trace_programs_options {
	bool wants_thread_time;
	bool joins_backward; /* as in struct trace_stacks */
	struct weight_spans *idle, *held;
};

int trace_programs_fill_stacks(struct model *model, const struct trace_view *views, size_t count,
	const struct trace_programs_options *options);
