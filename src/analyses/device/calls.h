/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a runtime and its driver (categories cuda_runtime, cuda_driver and their like): how
 * often each was made, and how long it took. A call within another counts in its own row, and the
 * time of both in their rows; `covered_ns` and `load_ns` count each moment of a thread once.
 * Calls of a recording that have stacks are counted by line, too.
 */
#pragma once

#include "analyses/trace_view.h"

/* Calls of one name. */
struct call_use {
	const char *name;
	uint64_t count;
	uint64_t failed;   /* of a recording, of calls that launch nothing; 0: none, or not known */
	uint64_t recorded; /* of a recording: calls that launch nothing, of which it is known */
	int64_t total_ns, longest_ns;
	bool is_load; /* loads code or compiles it */
};

/* A line of a recording, and the calls of one name that it made. */
struct call_line {
	const char *name; /* the same pointer as the call's */
	uint32_t frame;   /* in the recording, see cpu/charge.h; MODEL_NONE: no stack is known */
	uint32_t stack;   /* of the longest of them, index; MODEL_NONE: not known */
	uint64_t count;
	int64_t total_ns, longest_ns;
};

struct calls {
	ARRAY_OF(struct call_use) rows; /* most time first */
	int64_t covered_ns;             /* threads were in a call */
	int64_t load_ns;                /* in one that loads or compiles code */
	uint64_t others; /* of a recording: calls beyond launches, waits, events, allocations */
	ARRAY_OF(struct call_line) lines; /* most time first; empty where no stack is known */
};

/* Returns 0 or -ENOMEM. */
int calls_init(struct calls *calls, const struct trace_view *view);
void calls_done(struct calls *calls);
#define _cleanup_calls_ _cleanup_(calls_done)

/* By its name: "cuLibraryLoadData", "cuLinkComplete", "hipModuleLoad". */
bool call_loads_code(const char *name);
