/* SPDX-License-Identifier: Apache-2.0 */
/* One sample: who ran where, or waits for what; the user, the Python and the kernel stack. */
#pragma once

#include "arch/arch.h"
#include "wire/python.h"
#include "wire/record.h"
#include "wire/stack.h"
#include "wire/wait.h"

enum wire_sample_flags {
	WIRE_SAMPLE_KERNEL_MODE = 1 << 0, /* the CPU was in the kernel */
	WIRE_SAMPLE_STACK_COPY = 1 << 1,  /* struct wire_stack_copy follows the frames */
	/* gil_holder is the holder's thread pointer, not its tid (CPython before 3.11). */
	WIRE_SAMPLE_HOLDER_IS_POINTER = 1 << 2,
	/* Of waits measured from begin to end, in samples and in struct wire_wake. */
	WIRE_SAMPLE_EXACT = 1 << 3,   /* waited_ns is a whole wait: no more time comes for it */
	WIRE_SAMPLE_FOR_CPU = 1 << 4, /* runnable_ns, too, is charged to the stack */
	WIRE_SAMPLE_OPEN = 1 << 5,    /* the wait had not ended when the recording did */
	WIRE_SAMPLE_COUNTED = 1 << 6, /* cycles and instructions are known */
	WIRE_SAMPLE_LAUNCH = 1 << 7,  /* the stack of a launch of device work */
};

/*
 * Followed by kernel_frame_count addresses, python_frame_count struct wire_python_frame and
 * user_frame_count addresses, each innermost first, then, with WIRE_SAMPLE_STACK_COPY, one struct
 * wire_stack_copy and its bytes.
 *
 * A user frame's address is the one to look up: the interrupted pc itself for the innermost frame
 * and for frames that a signal interrupted, the return address minus one for every other frame.
 * Kernel frames are as the kernel gives them: the innermost is exact, the others are return
 * addresses.
 *
 * Of a deep stack the frames between the innermost and the outermost ones are left out. The
 * outermost ones, the last WIRE_OUTER_USER_FRAMES of user_frame_count, are then a ring: its
 * innermost frame is at user_left_out modulo its size. The same holds for the Python frames.
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
	__u8 stop;     /* enum wire_stop, of the user stack */
	__u8 flags;    /* enum wire_sample_flags */
	__u8 python;   /* enum wire_python */
	__u8 gil;      /* enum wire_gil */
	__u32 exec_id; /* task_struct.self_exec_id: grows when the process runs another program */
	char thread_name[16];
	char process_name[16]; /* the group leader's */
	__u16 python_frame_count;
	__u8 wait; /* enum wire_wait */
	__u8 reserved;
	__u32 python_interpreter; /* which process image the code objects lie in; 0: none */
	union {
		__u64 waited_ns;   /* with `wait`: the time charged to this stack */
		__u64 correlation; /* with WIRE_SAMPLE_LAUNCH, which has no `wait`: its id */
		/* With WIRE_SAMPLE_COUNTED: the CPU's, since its sampling clock ticked last. */
		__u64 cycles;
	};
	__u64 thread_pointer; /* pthread_self() */
	__u64 gil_holder;     /* with WIRE_GIL_WAITING: tid of the holder; 0: not known */
	union {
		/* With WIRE_SAMPLE_EXACT: the last part of waited_ns, in which the thread could
		 * run. */
		__u64 runnable_ns;
		__u64 instructions; /* like cycles */
	};
	__u16 user_left_out;
	__u16 evaluations_left_out; /* those of them that are the interpreter's evaluation */
	__u16 python_left_out;
	__u16 entries_left_out; /* those of them with WIRE_PYTHON_ENTRY */
	__u64 frames[];
};

_Static_assert(sizeof(struct wire_sample) == 128, "wire_sample is part of the wire format");

/*
 * More time for the last waiting sample of a thread, in which it waited there still; without one,
 * time that a thread waited unseen.
 */
struct wire_wake {
	struct wire_record record;
	__u64 time_ns;
	__u64 waited_ns; /* since the sample or the last of these */
	__u32 pid, tid;
	__u64 runnable_ns; /* as in wire_sample */
	__u32 flags;       /* enum wire_sample_flags */
	__u32 reserved;
};

_Static_assert(sizeof(struct wire_wake) == 48, "wire_wake is part of the wire format");

/* Waits of a thread, for one thing, whose stack was not taken. */
struct wire_wait_count {
	struct wire_record record;
	__u64 time_ns;
	__u64 waited_ns; /* all of them together */
	__u64 count;
	__u32 pid, tid;
	__u32 wait; /* enum wire_wait */
	__u32 reserved;
};

_Static_assert(sizeof(struct wire_wait_count) == 48, "wire_wait_count is part of the wire format");

/*
 * Registers and the top of the user stack, sent when a needed unwind table is not loaded yet (and
 * for every sample of the unprivileged mode); user space unwinds it with the same step function.
 */
struct wire_stack_copy {
	__u64 pc, sp;
	__u64 fp, second;           /* frame pointer and second register, see arch/arch.h */
	__u64 leaf[ARCH_REGISTERS]; /* all general registers in DWARF order */
	__u64 stack_bytes;          /* copied from sp upwards; they follow this struct */
};

_Static_assert(sizeof(struct wire_stack_copy) == 40 + 8 * ARCH_REGISTERS,
	"wire_stack_copy is part of the wire format");

#define WIRE_MAX_STACK_COPY_BYTES (64 * 1024)
