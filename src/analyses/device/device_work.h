/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices did: how busy each was, and which lines launched its work. Work is charged to the
 * stack in model_device_work.stack, by the rule of cpu/charge.h.
 */
#pragma once

#include "base/array.h"
#include "model/model.h"

struct device_use {
	const char *name; /* "" when unknown */
	uint64_t busy_ns; /* some work ran: overlapping work counts once */
	uint64_t work_ns; /* of all work together */
	uint64_t count;
};

/* Time that the tracing library and the driver took from the program, by the library's word. */
struct device_overhead {
	uint64_t count, total_ns;
};

/* The line of code, or without lines the function, that launched work: see charge_frame(). */
struct device_line {
	uint32_t frame;                       /* in the model; MODEL_NONE: the stack is not known */
	enum model_unattributed unattributed; /* of MODEL_NONE */
	uint64_t count, total_ns;
};

struct device_work {
	uint64_t count, total_ns;
	uint64_t by_attribution[MODEL_UNATTRIBUTED_MAX];    /* works */
	uint64_t ns_by_attribution[MODEL_UNATTRIBUTED_MAX]; /* their time */
	uint64_t started_before_launch;
	uint64_t launch_call_ns; /* in the calls that launched it, replays of a graph once */
	uint64_t launch_calls;
	uint64_t replayed;                      /* works of graphs; of them, those whose */
	uint64_t replayed_without_capture;      /* capture's stack is not known */
	uint64_t whole_replays;                 /* works that are all of a replay */
	uint64_t by_capture[MODEL_CAPTURE_MAX]; /* nodes: whether the call is known */
	struct device_overhead overhead;
	ARRAY_OF(struct device_use) devices; /* in order of their first work */
	ARRAY_OF(struct device_line) lines;  /* most time first */
};

/* Returns 0 or -ENOMEM. Strings are the model's. */
int device_work_init(struct device_work *work, const struct model *model);
void device_work_done(struct device_work *work);
#define _cleanup_device_work_ _cleanup_(device_work_done)
