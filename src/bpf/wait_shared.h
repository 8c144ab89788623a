/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What wait.bpf.c and sampled_waits.c both know. */
#pragma once

#include <linux/types.h>

/* What is remembered of a thread from one look to the next: its task storage. */
struct wait_look {
	__u64 last_ns;         /* 0: not seen before */
	__u64 last_runtime_ns; /* se.sum_exec_runtime */
	__u64 switches;        /* nvcsw */
	__u64 unattributed_ns; /* waited, with no stack to charge it to yet */
	__u64 unreported_ns;   /* more time for the stack that was sent */
	__u32 has_stack;       /* its stack was sent, and it waits there still */
	__u32 reserved;
};

enum wait_counter {
	WAIT_COUNT_LOOKED,
	WAIT_COUNT_UNCHANGED,
	WAIT_COUNT_CHANGED, /* waiting threads whose stack was due */
	WAIT_COUNT_TAKEN,   /* of these: stacks taken */
	WAIT_COUNT_RACED,   /* it went on while its stack was read */
	WAIT_COUNT_MAX
};

/* count_from_ns where nothing is counted. */
#define WAIT_NOT_COUNTED (~0ULL)
/* Time for a stack that goes on is sent at least this often. */
#define WAIT_REPORT_NS 1000000000ULL
