/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a trace: what all devices of all ranks did, why they were idle, what would help. */
#pragma once

#include "analyses/program/startup.h"
#include "analyses/trace_results.h"

/* What would help, where the figures say so clearly; bits. */
enum trace_advice {
	TRACE_ADVICE_LAUNCH_BOUND = 1 << 0,   /* kernels are shorter than their launches */
	TRACE_ADVICE_HOST_BOUND = 1 << 1,     /* devices wait for the program */
	TRACE_ADVICE_DEPENDENCIES = 1 << 2,   /* they are idle although work was launched */
	TRACE_ADVICE_COMMUNICATION = 1 << 3,  /* they only communicate */
	TRACE_ADVICE_COPIES = 1 << 4,         /* they only copy */
	TRACE_ADVICE_KERNELS = 1 << 5,        /* they compute: kernels are what takes the time */
	TRACE_ADVICE_BLOCKING = 1 << 6,       /* calls that block keep the program from launching */
	TRACE_ADVICE_SHORT_GAPS = 1 << 7,     /* from one launched kernel to the next */
	TRACE_ADVICE_NO_LAUNCHES = 1 << 8,    /* why they are idle is not in the trace */
	TRACE_ADVICE_PAGEABLE = 1 << 9,       /* copies from memory that is not pinned */
	TRACE_ADVICE_SLOW_LAUNCHES = 1 << 10, /* they wait for the calls that launch */
	TRACE_ADVICE_END = 1 << 11,
};

/* The stable name of one of them, for JSON: "launch_bound" … */
const char *trace_advice_name(enum trace_advice advice);

/* The call that devices were idle for longest, while it blocked or launched. */
struct trace_summary_block {
	uint32_t view; /* index; MODEL_NONE: there is none */
	uint32_t row;
	/* Around it, the innermost: an operator or annotation, a Python function; MODEL_NONE. */
	uint32_t op, python;
	int64_t idle_ns;
};

/* A device, and how it stands out. */
struct trace_summary_device {
	uint32_t view, device; /* indices */
	double idle_share;
};

struct trace_summary {
	uint32_t devices;
	int64_t span_ns, idle_ns; /* sums over devices */
	struct startup startup;   /* before that: no part of span_ns */
	int64_t by_set_ns[TEMPORAL_SETS];
	int64_t compute_ns, communication_ns, communication_beside_compute_ns;
	int64_t only_communication_ns; /* with copies or without, nothing computes */
	int64_t only_memory_ns;
	int64_t pageable_ns; /* of copies from and to memory of the host that is not pinned */
	uint64_t pageable_works;
	uint64_t communication_works[COMMUNICATION_EVIDENCE_MAX]; /* kernels, by how it is known */
	int64_t idle_by_cause_ns[DEVICE_IDLE_CAUSE_MAX];
	uint64_t launches, short_launches; /* of kernels; those that take less than their call */
	struct trace_summary_device least_idle, most_idle;
	struct trace_summary_block longest_block, longest_launch;
	unsigned advice; /* enum trace_advice */
};

/* What following an advice can save at most, of all devices together; 0: not known. */
int64_t trace_summary_saves_ns(const struct trace_summary *summary, enum trace_advice advice);

/* Of sonde's own definitions. Returns 0 or -ENOMEM. */
int trace_summary_init(struct trace_summary *summary, struct trace_results *results);
