/* SPDX-License-Identifier: Apache-2.0 */
/* CPython frames as the samplers see them: code objects by address, named later. */
#pragma once

#include "wire/record.h"

/*
 * Why a sample of a Python process has the Python frames that it has: kept with every stack, from
 * the sampler to the report. The values are stored in captures: append only.
 */
enum wire_python {
	WIRE_PYTHON_NONE = 0,       /* no Python in this process */
	WIRE_PYTHON_FRAMES = 1,     /* all Python frames are there */
	WIRE_PYTHON_NO_STATE = 2,   /* a thread that never ran Python, or has left it */
	WIRE_PYTHON_NO_FRAMES = 3,  /* a Python thread with no frame: starting or ending */
	WIRE_PYTHON_STARTING = 4,   /* the interpreter is not initialised yet */
	WIRE_PYTHON_READ_FAULT = 5, /* interpreter memory could not be read */
	WIRE_PYTHON_DEPTH = 6,      /* WIRE_MAX_PYTHON_DEPTH reached */
	WIRE_PYTHON_UNKNOWN = 7,    /* an interpreter whose layout could not be validated */
	WIRE_PYTHON_NOT_MERGED = 8, /* native and Python frames do not match: order is by guess */
	WIRE_PYTHON_USER_MODE = 9,  /* the mode without privileges takes no Python frames */
	WIRE_PYTHON_TOO_EARLY = 10, /* the sampler did not know the interpreter yet */
	WIRE_PYTHON_MAX
};

/* As of native frames (wire/stack.h): of a deeper stack both ends are kept. */
#define WIRE_MAX_PYTHON_FRAMES   1024
#define WIRE_OUTER_PYTHON_FRAMES 256 /* a power of two */
#define WIRE_MAX_PYTHON_DEPTH    16384

/* What a thread of a Python process does with the global interpreter lock. Append only. */
enum wire_gil {
	WIRE_GIL_NONE = 0, /* not a Python thread, or not known */
	WIRE_GIL_HELD = 1,
	WIRE_GIL_WAITING = 2,
	WIRE_GIL_RELEASED = 3, /* runs, or waits for something else, without it */
	WIRE_GIL_MAX
};

enum wire_python_frame_flags {
	/* The outermost Python frame of one native evaluation of the interpreter: the next Python
	 * frame belongs to the next native evaluation outwards. */
	WIRE_PYTHON_ENTRY = 1 << 0,
	/* The code object could not be read here: `check` is 0, user space may read it. */
	WIRE_PYTHON_FAULTED = 1 << 1,
};

/* One Python frame, innermost first in a sample. */
struct wire_python_frame {
	__u64 code;   /* address of the PyCodeObject */
	__u32 check;  /* of the code object's contents: see python_code_check() */
	__s32 offset; /* of the current instruction in bytes from the first; -1: not started */
	__u32 flags;  /* enum wire_python_frame_flags */
	__u32 reserved;
};

_Static_assert(sizeof(struct wire_python_frame) == 24, "wire_python_frame is part of the format");

/*
 * Names and lines of one code object, sent when it is first seen. Four pieces follow, each padded
 * to 8 bytes: the str objects of file name, name and qualified name (from their header on, cut at
 * WIRE_PYTHON_TEXT_BYTES), and the bytes object of the line table (from its header on, cut at
 * WIRE_PYTHON_LINES_BYTES).
 */
struct wire_python_code {
	struct wire_record record;
	__u64 time_ns;
	__u64 code;
	__u32 check;
	__u32 interpreter; /* as struct wire_sample's python_interpreter */
	__u32 pid;
	__u32 first_line;
	__u32 piece_bytes[4]; /* file name, name, qualified name, line table; 0: could not be read,
				 or this version has none */
};

_Static_assert(sizeof(struct wire_python_code) == 56, "wire_python_code is part of the format");

#define WIRE_PYTHON_TEXT_BYTES  512
#define WIRE_PYTHON_LINES_BYTES 8192

#ifndef __bpf__
/* The stable names, used in reports and JSON; "unknown" when out of range. */
static inline const char *wire_python_name(unsigned python)
{
	static const char *const names[WIRE_PYTHON_MAX] = {
		[WIRE_PYTHON_NONE] = "no_python",
		[WIRE_PYTHON_FRAMES] = "frames",
		[WIRE_PYTHON_NO_STATE] = "no_thread_state",
		[WIRE_PYTHON_NO_FRAMES] = "no_frames",
		[WIRE_PYTHON_STARTING] = "starting",
		[WIRE_PYTHON_READ_FAULT] = "read_fault",
		[WIRE_PYTHON_DEPTH] = "depth",
		[WIRE_PYTHON_UNKNOWN] = "unknown_interpreter",
		[WIRE_PYTHON_NOT_MERGED] = "not_merged",
		[WIRE_PYTHON_USER_MODE] = "user_mode",
		[WIRE_PYTHON_TOO_EARLY] = "too_early",
	};

	return python < WIRE_PYTHON_MAX ? names[python] : "unknown";
}

static inline const char *wire_gil_name(unsigned gil)
{
	static const char *const names[WIRE_GIL_MAX] = {
		[WIRE_GIL_NONE] = "none",
		[WIRE_GIL_HELD] = "held",
		[WIRE_GIL_WAITING] = "waiting",
		[WIRE_GIL_RELEASED] = "released",
	};

	return gil < WIRE_GIL_MAX ? names[gil] : "unknown";
}
#endif
