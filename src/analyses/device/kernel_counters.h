/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices counted (PM sampling: gpu_samples.h) while work of a name ran, work of an operator
 * or range, and in steps. The mean of a counter is over the time in which some work of the row ran
 * and a sample has the counter: each sample counts for as long as it overlaps the row's work.
 *
 * A device counts, not a kernel: in a sample is also what other work did on it, at the same time or
 * in another part of the sample, and no share of it can be told apart. So rows have all of it, and
 * say how far it is theirs: of the time of their samples, `alone_ns` of `samples_ns` is that in
 * which work of the row ran and no other work of the device.
 */
#pragma once

#include "analyses/device/gpu_samples.h"

enum kernel_counters_by {
	KERNEL_COUNTERS_BY_NAME,
	/* Operators and annotations around the launch, or the call that captured it: each has the
	 * work of those inside it. Profiler steps, and what is beyond 32 of them, are left out. */
	KERNEL_COUNTERS_BY_RANGE,
	/* Profiler steps: all of their time, with and without work, on the devices that their
	 * process sampled. Nothing is alone in them. */
	KERNEL_COUNTERS_BY_STEP,
};

struct kernel_counters_row {
	const char *name;    /* the trace's */
	uint32_t device;     /* index in view.devices */
	int64_t pid;         /* of steps */
	uint64_t step;       /* of steps: its number */
	uint64_t count;      /* of work; 1 of a step */
	int64_t total_ns;    /* that it took, in all */
	int64_t measured_ns; /* it ran while there was a sample: what overlaps counts once */
	int64_t alone_ns, samples_ns; /* see above */
	uint64_t samples;             /* each once */
	double means[WIRE_PM_MAX];    /* NaN: not counted meanwhile */
};

struct kernel_counters {
	/* Most time first; steps by process, number and device. Rows of work also where there were
	 * no samples meanwhile. */
	ARRAY_OF(struct kernel_counters_row) rows;
};

/* `samples`: of the view; without any there are no rows. Returns 0 or -ENOMEM. */
int kernel_counters_init(struct kernel_counters *counters, const struct trace_view *view,
	const struct gpu_samples *samples, enum kernel_counters_by by);
void kernel_counters_done(struct kernel_counters *counters);
#define _cleanup_kernel_counters_ _cleanup_(kernel_counters_done)
