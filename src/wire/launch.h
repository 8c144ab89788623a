/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of launches without a look at each: what the injected library must know of its process to
 * tell a stack that was seen before, and what it says of such launches.
 */
#pragma once

#include <stdatomic.h>

#include "wire/record.h"
#include "wire/sample.h"

/* How the stacks of launches are taken: the gate says it. */
enum wire_launch_stacks {
	WIRE_LAUNCH_STACKS_OFF = 0,
	WIRE_LAUNCH_STACKS_MARKER = 1, /* a probe on the marker takes them */
	WIRE_LAUNCH_STACKS_COPY = 2,   /* the library sends copies: WIRE_RECORD_SAMPLE */
};

enum wire_launch_record_type {
	WIRE_RECORD_LAUNCH_SAME = 80,  /* struct wire_launch_same */
	WIRE_RECORD_LAUNCH_CHECK = 81, /* the same; the launch's own stack was taken all the same */
};

/* The launch `correlation` has the stack of the launch `same_as`, by all that the key takes in. */
struct wire_launch_same {
	struct wire_record record;
	__u64 correlation;
	__u64 same_as;
	__u64 time_ns; /* CLOCK_MONOTONIC */
};

_Static_assert(sizeof(struct wire_launch_same) == 32, "wire_launch_same is part of the format");

/* What the collector knows of Python in the process. */
enum wire_launch_python {
	WIRE_LAUNCH_PYTHON_UNKNOWN = 0, /* not yet, or its layout is not known: no stack is known */
	WIRE_LAUNCH_PYTHON_NONE = 1,
	WIRE_LAUNCH_PYTHON_TARGET = 2,
};

#define WIRE_LAUNCH_CODE_RANGES  1024
#define WIRE_LAUNCH_TARGET_WORDS 12

struct wire_code_range {
	__u64 start, end;
};

#define WIRE_LAUNCH_HINTS       128 /* a power of two */
#define WIRE_LAUNCH_HINT_FRAMES 128

/* The stack of a launch as it was unwound. */
struct wire_launch_hint {
	_Atomic __u64 number; /* how many came before, and this one; 0 while it is written */
	__u64 correlation;
	__u64 frame_count;
	__u64 frames[WIRE_LAUNCH_HINT_FRAMES]; /* return addresses - 1 */
};

/*
 * In the ring file, written by the collector while the process reads: `sequence` is odd meanwhile,
 * and 0 before the first time. Ranges are sorted; those that found no room end the use of all.
 */
struct wire_launch_facts {
	_Atomic __u32 sequence;
	__u32 python; /* enum wire_launch_python */
	__u32 code_range_count;
	__u32 reserved;
	__u64 python_target[WIRE_LAUNCH_TARGET_WORDS]; /* struct python_target */
	struct wire_code_range code_ranges[WIRE_LAUNCH_CODE_RANGES];
	_Atomic __u64 hint_count; /* ever; each overwrites the one WIRE_LAUNCH_HINTS before */
	struct wire_launch_hint hints[WIRE_LAUNCH_HINTS];
};

_Static_assert(sizeof(struct wire_launch_facts) ==
		       120 + sizeof(struct wire_code_range) * WIRE_LAUNCH_CODE_RANGES +
			       sizeof(struct wire_launch_hint) * WIRE_LAUNCH_HINTS,
	"wire_launch_facts is part of the format");

/*
 * A WIRE_RECORD_SAMPLE in a ring: of struct wire_sample the library fills time_ns, tid,
 * correlation, python, python_frame_count and python_interpreter, and adds Python frames and a copy
 * of the stack. The rest is 0.
 */
#define WIRE_LAUNCH_COPY_BYTES    (32 * 1024)
#define WIRE_LAUNCH_PYTHON_FRAMES 256
#define WIRE_LAUNCH_MAX_BYTES                                                                      \
	(sizeof(struct wire_sample) +                                                              \
		WIRE_LAUNCH_PYTHON_FRAMES * sizeof(struct wire_python_frame) +                     \
		sizeof(struct wire_stack_copy) + WIRE_LAUNCH_COPY_BYTES)
