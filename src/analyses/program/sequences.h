/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frequent sequences of kernels: what operators launch, in the order in which it ran. Operators
 * that always launch the same short kernels are those to fuse.
 */
#pragma once

#include "analyses/trace_view.h"
#include "base/array.h"
#include "base/map.h"

struct trace_sequence {
	uint32_t op;             /* string: the operator's name */
	const uint32_t *kernels; /* strings, in order of their start */
	size_t kernel_count;
	uint64_t count;    /* how often */
	int64_t op_ns;     /* of the operators, with what they call */
	int64_t kernel_ns; /* of the kernels */
};

struct trace_sequences {
	ARRAY_OF(struct trace_sequence) items; /* most frequent first, then the longest GPU time */
	struct intern texts;                   /* keys of the sequences */
	uint32_t *kernels;                     /* of all of them */
	uint64_t operators;                    /* that launched at least `shortest` kernels */
};

struct trace_sequence_options {
	const char *op; /* operators whose names have it; NULL: all that lie in no other operator */
	size_t shortest; /* kernels; 0: TRACE_SEQUENCE_SHORTEST */
};

#define TRACE_SEQUENCE_SHORTEST 3 /* HTA's */

/* Returns 0 or -ENOMEM. */
int trace_sequences_init(struct trace_sequences *sequences, const struct trace_view *view,
	const struct trace_sequence_options *options);
void trace_sequences_done(struct trace_sequences *sequences);
#define _cleanup_trace_sequences_ _cleanup_(trace_sequences_done)
