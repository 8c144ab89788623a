/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that launch work of devices, and what launching costs: HTA's kernel launch statistics. A
 * call is one row, with all the work that it launched; HTA has a row for each piece of work, and
 * knows four calls by name: no graphs, no driver.
 */
#pragma once

#include "analyses/trace_describe.h"
#include "analyses/trace_view.h"

/* HTA's limits of what is worth a look. */
#define TRACE_LAUNCH_LONG_CALL_NS  50000
#define TRACE_LAUNCH_LONG_DELAY_NS 100000

struct trace_launch {
	uint64_t correlation;
	uint32_t row;       /* of the call */
	uint32_t call;      /* index in `calls` */
	uint32_t works;     /* 1 in HTA */
	int64_t call_ns;    /* HTA's cpu_duration */
	int64_t work_ns;    /* HTA's gpu_duration: the sum of its work */
	int64_t delay_ns;   /* from the call's return to the start of its first work; at least 0 */
	int64_t latency_ns; /* from the call's begin; -1: the stream was busy meanwhile */
};

enum trace_launch_figure {
	TRACE_LAUNCH_CALL,
	TRACE_LAUNCH_WORK,
	TRACE_LAUNCH_DELAY,
	TRACE_LAUNCH_LATENCY,
	TRACE_LAUNCH_FIGURE_MAX,
};

/* Calls of one name. */
struct trace_launch_call {
	uint32_t name;
	uint64_t launches, works;
	uint64_t short_works; /* launches whose work takes less than the call */
	uint64_t long_calls, long_delays;
};

struct trace_launches {
	ARRAY_OF(struct trace_launch) rows;       /* in the file's order of calls */
	ARRAY_OF(struct trace_launch_call) calls; /* in the order of their first launch */
	uint64_t works_without_launch;
};

/* Returns 0 or -ENOMEM. */
int trace_launches_init(struct trace_launches *launches, const struct trace_view *view);
/* A figure of the launches by one call, in ns. Returns 0 or -ENOMEM. */
int trace_launches_describe(const struct trace_launches *launches, uint32_t call,
	enum trace_launch_figure figure, struct trace_describe *ret_describe);
void trace_launches_done(struct trace_launches *launches);
#define _cleanup_trace_launches_ _cleanup_(trace_launches_done)
