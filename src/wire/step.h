/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a program, as its processes count and tell them. */
#pragma once

#include <stdatomic.h>

#include "wire/record.h"

#define WIRE_STEP_NAME_BYTES 104
/* That one process may have; steps of others are only counted together. */
#define WIRE_STEP_NAMES 16

enum wire_step_record_type {
	WIRE_RECORD_STEP = 96, /* struct wire_step */
};

enum wire_step_state {
	WIRE_STEP_FREE = 0,
	WIRE_STEP_NAMED = 1,
	WIRE_STEP_CHOSEN = 2, /* the same, and windows count these steps */
};

/*
 * In a ring file: the steps of one name that its process made, with a closed gate, too. The thread
 * that made the first one counts alone in `owned`, without a locked instruction; all others in
 * `shared`.
 */
struct wire_step_counter {
	_Atomic __u32 state; /* enum wire_step_state */
	__u32 owner;         /* tid of who counts in `owned`, as the process sees it */
	_Atomic __u64 owned, shared;
	char name[WIRE_STEP_NAME_BYTES]; /* ends with a 0; longer ones are cut */
};

_Static_assert(
	sizeof(struct wire_step_counter) == 128, "wire_step_counter is part of the wire format");

/* WIRE_RECORD_STEP: with an open gate, that a step of the chosen name begins. */
struct wire_step {
	struct wire_record record;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 number;  /* steps of this name so far in the process, this one counted */
	__u32 tid;
	__u32 image;   /* which of the programs that the process was: see wire_range_event */
	__u32 counter; /* index of its counter in the ring file */
	__u32 reserved;
};

_Static_assert(sizeof(struct wire_step) == 40, "wire_step is part of the wire format");
