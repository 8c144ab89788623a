/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that launch work of devices, and what launching costs. A call is one row, with all the work
 * that it launched.
 */
#pragma once

#include "analyses/statistics.h"
#include "analyses/trace_view.h"

/* What is worth a look: the limits of kernel launch statistics in HTA (f4d0062). */
#define LAUNCH_LONG_CALL_NS  50000
#define LAUNCH_LONG_DELAY_NS 100000

struct launch {
	uint64_t correlation;
	uint32_t row;  /* of the call */
	uint32_t call; /* index in `calls` */
	uint32_t works;
	int64_t call_ns;    /* how long it took */
	int64_t work_ns;    /* the sum of its work */
	int64_t delay_ns;   /* from the call's return to the start of its first work; at least 0 */
	int64_t latency_ns; /* from the call's begin; -1: the stream was busy meanwhile */
	/* Of its first work, from when the driver took it until it handed it to the device, and
	 * from then to its start; -1: the recording does not say. */
	int64_t submit_ns, queue_ns;
};

enum launch_figure {
	LAUNCH_CALL,
	LAUNCH_WORK,
	LAUNCH_DELAY,
	LAUNCH_LATENCY,
	LAUNCH_SUBMIT,
	LAUNCH_QUEUE,
	LAUNCH_FIGURE_MAX,
};

/* Calls of one name. */
struct launch_call {
	uint32_t name;
	uint64_t launches, works;
	uint64_t short_works; /* launches whose work takes less than the call */
	uint64_t long_calls, long_delays;
};

struct launches {
	ARRAY_OF(struct launch) rows;       /* in the file's order of calls */
	ARRAY_OF(struct launch_call) calls; /* in the order of their first launch */
};

/* Returns 0 or -ENOMEM. */
int launches_init(struct launches *launches, const struct trace_view *view);
/* A figure of the launches by one call, in ns. Returns 0 or -ENOMEM. */
int launches_describe(const struct launches *launches, uint32_t call, enum launch_figure figure,
	struct trace_describe *ret_describe);
/* For those who choose rows otherwise: a launch of this work alone, without a latency; and what
 * follows when all rows are there. */
struct launch launch_of(const struct trace_view *view, const struct trace_view_work *work);
int launches_finish(struct launches *launches, const struct trace_view *view);
void launches_done(struct launches *launches);
#define _cleanup_launches_ _cleanup_(launches_done)
