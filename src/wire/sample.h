/* SPDX-License-Identifier: Apache-2.0 */
/* One CPU sample: who ran where, the user and the kernel stack. */
#pragma once

#include "wire/record.h"
#include "wire/stack.h"

enum wire_sample_flags {
	WIRE_SAMPLE_KERNEL_MODE = 1 << 0, /* the CPU was in the kernel */
	WIRE_SAMPLE_STACK_COPY = 1 << 1,  /* struct wire_stack_copy follows the frames */
};

/*
 * Followed by kernel_frame_count and then user_frame_count addresses, each innermost first, then,
 * with WIRE_SAMPLE_STACK_COPY, one struct wire_stack_copy and its bytes.
 *
 * A user frame's address is the one to look up: the interrupted pc itself for the innermost frame
 * and for frames that a signal interrupted, the return address minus one for every other frame.
 * Kernel frames are as the kernel gives them: the innermost is exact, the others are return
 * addresses.
 */
struct wire_sample {
	struct wire_record record;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 cgroup_id;
	__u32 pid; /* thread group, in the collector's PID namespace */
	__u32 tid;
	__u32 cpu;
	__u16 user_frame_count;
	__u16 kernel_frame_count;
	__u8 stop;  /* enum wire_stop, of the user stack */
	__u8 flags; /* enum wire_sample_flags */
	__u16 reserved;
	__u32 exec_id; /* task_struct.self_exec_id: grows when the process runs another program */
	char thread_name[16];
	char process_name[16]; /* the group leader's */
	__u64 frames[];
};

_Static_assert(sizeof(struct wire_sample) == 80, "wire_sample is part of the wire format");

/*
 * Registers and the top of the user stack, sent when a needed unwind table is not loaded yet (and
 * for every sample of the unprivileged mode); user space unwinds it with the same step function.
 */
struct wire_stack_copy {
	__u64 pc, sp, bp, bx;
	__u64 leaf[16];    /* all general registers in DWARF order: rax rdx rcx rbx rsi rdi rbp rsp
			      r8…r15 */
	__u64 stack_bytes; /* copied from sp upwards; they follow this struct */
};

_Static_assert(sizeof(struct wire_stack_copy) == 168, "wire_stack_copy is part of the wire format");

#define WIRE_MAX_STACK_COPY_BYTES (64 * 1024)
