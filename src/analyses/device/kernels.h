/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of devices by name: what each kernel, copy or fill took in all; and the same of the
 * annotations of a device's timeline.
 */
#pragma once

#include "analyses/device/communication.h"
#include "analyses/statistics.h"
#include "analyses/trace_view.h"
#include "base/map.h"

struct kernel_row {
	const char *name;
	enum trace_kind kind;
	enum communication_evidence evidence; /* of communication: of the first */
	uint32_t device;                      /* index in view.devices; of several views: none */
	uint64_t count;
	int64_t total_ns, least_ns, most_ns, median_ns;
	double mean_ns;
	double deviation_ns; /* of the sample, with count - 1; 0 of one */
	/* Of kernels: of the longest run that has a launch configuration; NULL: none has. */
	const struct trace_work *configuration;
	int64_t configuration_ns;
	bool configurations_differ; /* other runs had others */
	/* Of recordings that say it: from when the driver handed them to the device to their
	 * starts, of so many; and the priority of the longest run. */
	int64_t queue_total_ns;
	uint64_t queue_count;
	int64_t priority_ns; /* how long that run took */
	int32_t priority;
	bool has_priority;
	bool priorities_differ;
	/* Of several views: of the rank where it took least, 0 where one has none, and most. */
	int64_t least_total_ns, most_total_ns;
	uint32_t least_rank, most_rank;
	uint32_t ranks;        /* that have it */
	int64_t rank_total_ns; /* of the rank that is being added */
	uint64_t rank_count;
};

struct kernels {
	ARRAY_OF(struct kernel_row) rows; /* most time first */
	int64_t total_ns;
	/* Until all views are added. */
	struct intern keys;       /* names, kinds and devices → rows */
	struct medians durations; /* by row */
};

/*
 * Device work of one view by name and device, or of several views by name. Names are the traces'.
 * Returns 0 or -ENOMEM.
 */
int kernels_init(struct kernels *kernels, const struct trace_view *views, size_t count);
/* Annotations of the devices' timelines by name. */
int kernels_of_annotations(struct kernels *kernels, const struct trace_view *views, size_t count);
void kernels_done(struct kernels *kernels);
#define _cleanup_kernels_ _cleanup_(kernels_done)
