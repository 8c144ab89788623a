/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What exact.bpf.c, open_waits.bpf.c and exact_waits.c know. */
#pragma once

#include <linux/types.h>

/* A power of two above the reasons of wire/wait.h. */
#define EXACT_REASONS 16

/* Waits whose stack is not taken. */
struct exact_count {
	__u64 count, waited_ns;
};

/* A thread's task storage. */
struct exact_thread {
	__u64 begin_ns;   /* when it left the CPU; 0: it runs */
	__u64 wake_ns;    /* since then it can run again; 0: not yet */
	__u64 switches;   /* all so far, as it left the CPU */
	__u64 runtime_ns; /* the same: se.sum_exec_runtime */
	__u64 sent_ns;    /* when `counts` were sent */
	__u32 state;      /* as it left the CPU; 0: it was preempted */
	__u32 known;      /* 0: fresh */
	__u32 ended;
	/* Where stacks are taken at the switch: the reason, and whether the stack was sent. */
	__u32 reason, sent;
	__u32 epoch; /* of the recording; in another one all else is of no use */
	struct exact_count counts[EXACT_REASONS];
};

/* start_ns while programs are attached and the recording has not begun: waits are followed, and not
 * counted. */
#define EXACT_NOT_BEGUN (~0ULL)

/* Waits without a stack are reported at least this often, if the thread runs. */
#define EXACT_SEND_NS 1000000000ULL
