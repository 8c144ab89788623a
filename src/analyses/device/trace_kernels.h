/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a trace by name: HTA's kernel breakdown, and its breakdown of user annotations. HTA lists
 * the kernels of computation, communication and memory, and lumps what comes after the first ones
 * into "others" where it is asked to; here all are listed.
 */
#pragma once

#include "analyses/device/communication.h"
#include "analyses/medians.h"
#include "analyses/trace_view.h"

struct trace_kernel {
	uint32_t name;   /* string */
	uint32_t number; /* of its values in `durations` */
	enum trace_kind kind;
	uint64_t count;
	int64_t total_ns, least_ns, most_ns;
	enum communication_evidence evidence; /* of communication: of the first */
	int64_t median_ns;
	double mean_ns;
	double deviation_ns; /* of the sample, with count - 1; 0 of one */
};

struct trace_kernels {
	ARRAY_OF(struct trace_kernel) rows; /* most time first */
	struct medians durations;
};

/* Device work by name. All return 0 or -ENOMEM. */
int trace_kernels_init(struct trace_kernels *kernels, const struct trace_view *view);
/* Annotations by name: those of the GPU's timeline, or those of threads. */
int trace_annotations_init(
	struct trace_kernels *annotations, const struct trace_view *view, bool of_device);
void trace_kernels_done(struct trace_kernels *kernels);
#define _cleanup_trace_kernels_ _cleanup_(trace_kernels_done)
