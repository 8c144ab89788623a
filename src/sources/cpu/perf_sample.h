/* SPDX-License-Identifier: Apache-2.0 */
/* One PERF_RECORD_SAMPLE of the perf sampler → one wire_sample with a copy of the stack. */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>

#include "wire/sample.h"

/* What the events must ask for; PERF_SAMPLE_CALLCHAIN (kernel part) may be added. */
#define PERF_SAMPLE_USER_STACK_TYPE                                                                \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |                   \
		PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* The largest wire_sample that comes of a record. */
#define PERF_SAMPLE_MAX_BYTES                                                                      \
	(sizeof(struct wire_sample) + WIRE_MAX_KERNEL_FRAMES * sizeof(__u64) +                     \
		sizeof(struct wire_stack_copy) + WIRE_MAX_STACK_COPY_BYTES)

/*
 * Fills all but the names and exec_id. `sample` has PERF_SAMPLE_MAX_BYTES. A 32-bit process stops
 * with COMPAT, a task without user registers with NO_USER_STACK, both without a copy. False when
 * the record is not what it should be.
 */
bool perf_sample_convert(
	const struct perf_event_header *header, __u64 sample_type, struct wire_sample *sample);
