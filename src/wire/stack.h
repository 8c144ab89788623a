/* SPDX-License-Identifier: Apache-2.0 */
/* Why a stack ends where it does: kept with every stack, from the unwinder to the report. */
#pragma once

/*
 * The values are stored in captures: append only. Names in wire_stop_names below.
 */
enum wire_stop {
	WIRE_STOP_COMPLETE = 0,      /* the thread's entry: undefined return address, or zero */
	WIRE_STOP_NO_USER_STACK = 1, /* kernel thread, or the address space is gone */
	WIRE_STOP_NO_MAPPING = 2,    /* the address lies in no known executable mapping */
	WIRE_STOP_NO_TABLE = 3,      /* the file's unwind table was not loaded yet */
	WIRE_STOP_NO_RULE = 4,       /* gap in .eh_frame, or an expression we do not evaluate */
	WIRE_STOP_READ_FAULT = 5,    /* stack memory could not be read */
	WIRE_STOP_NO_PROGRESS = 6,   /* the caller's frame does not lie above: corrupt stack */
	WIRE_STOP_DEPTH = 7,         /* WIRE_MAX_USER_DEPTH reached */
	WIRE_STOP_FRAME_POINTER = 8, /* a frame-pointer chain (JIT code) ended before the entry */
	WIRE_STOP_STACK_COPY = 9,    /* the copied part of the stack was too short */
	WIRE_STOP_COMPAT = 10,       /* a 32-bit process */
	/* The mapping was so new that the sampler did not know it, and the stack was not copied. */
	WIRE_STOP_NEW_MAPPING = 11,
	/*
	 * The caller is on another stack: a goroutine's, or, of a copied stack, the one that a
	 * signal handler on a stack of its own interrupted.
	 */
	WIRE_STOP_OTHER_STACK = 12,
	WIRE_STOP_MAX
};

/*
 * Of a deeper stack both ends are kept: the innermost frames, and the WIRE_OUTER_USER_FRAMES that
 * are the outermost.
 */
#define WIRE_MAX_USER_FRAMES   512
#define WIRE_OUTER_USER_FRAMES 128 /* a power of two */
/* So far a stack is followed: the sampler is in an interrupt, and a frame takes some 50 ns. */
#define WIRE_MAX_USER_DEPTH    16384
#define WIRE_MAX_KERNEL_FRAMES 128

#ifndef __bpf__
/* The stable name of a stop reason, used in captures' reports and JSON; "unknown" when out of
 * range. */
static inline const char *wire_stop_name(unsigned stop)
{
	static const char *const names[WIRE_STOP_MAX] = {
		[WIRE_STOP_COMPLETE] = "complete",
		[WIRE_STOP_NO_USER_STACK] = "no_user_stack",
		[WIRE_STOP_NO_MAPPING] = "no_mapping",
		[WIRE_STOP_NO_TABLE] = "no_table",
		[WIRE_STOP_NO_RULE] = "no_rule",
		[WIRE_STOP_READ_FAULT] = "read_fault",
		[WIRE_STOP_NO_PROGRESS] = "no_progress",
		[WIRE_STOP_DEPTH] = "depth",
		[WIRE_STOP_FRAME_POINTER] = "frame_pointer",
		[WIRE_STOP_STACK_COPY] = "stack_copy",
		[WIRE_STOP_COMPAT] = "compat",
		[WIRE_STOP_NEW_MAPPING] = "new_mapping",
		[WIRE_STOP_OTHER_STACK] = "other_stack",
	};

	return stop < WIRE_STOP_MAX ? names[stop] : "unknown";
}
#endif
