/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why devices were idle: HTA's idle time breakdown. A gap is charged to what the work that ended it
 * had to wait for.
 *
 * Ours: a device is idle while none of its streams is busy, and a stream while no work of it runs;
 * both are told. The time of a gap before its work was being launched is the host's, and the rest
 * of a gap that began unlaunched is the launch's. HTA looks at streams alone, takes the end of the
 * last work that started, not the last end, so that gaps may be negative, and charges a gap as a
 * whole. What of these parts the launching thread spent in calls that block is a cause of its own;
 * so is a longer gap in which the launch itself, a copy, was blocked.
 */
#pragma once

#include "analyses/trace_describe.h"
#include "analyses/trace_view.h"

enum trace_idle_cause {
	TRACE_IDLE_HOST,    /* the next work was not being launched yet */
	TRACE_IDLE_BLOCKED, /* of both: the thread was in a call that blocks (blocking.h) */
	TRACE_IDLE_LAUNCH,  /* its launch had begun after the gap did: what launching takes */
	TRACE_IDLE_KERNEL,  /* it was launched, and the gap is shorter than IDLE_KERNEL_WAIT_NS */
	TRACE_IDLE_OTHER,   /* it was launched: it waited for an event, or another stream */
	TRACE_IDLE_UNKNOWN, /* its launch is not in the file */
	TRACE_IDLE_CAUSE_MAX,
};

/* HTA's "host_wait", "kernel_wait", "other"; the others are ours. */
const char *trace_idle_cause_name(enum trace_idle_cause cause);
const char *trace_idle_cause_meaning(enum trace_idle_cause cause);

/* Of a device, or of a stream. */
struct trace_idle_place {
	uint32_t device, stream; /* indices; stream MODEL_NONE: of the whole device */
	int64_t idle_ns;         /* the sum of all causes */
	int64_t by_cause_ns[TRACE_IDLE_CAUSE_MAX];
	uint32_t first, count; /* of `gaps` */
	/* There are such gaps; HTA counts the time before the first work as one. */
	bool is_listed[TRACE_IDLE_CAUSE_MAX];
};

/* A gap of a place, or a part of one, with one cause. */
struct trace_idle_gap {
	int64_t start_ns, end_ns;
	uint32_t place; /* index in places */
	uint32_t next;  /* index of view.works: it ended the gap */
	uint32_t call;  /* of TRACE_IDLE_BLOCKED: its row; else MODEL_NONE */
	enum trace_idle_cause cause;
};

struct trace_idle {
	ARRAY_OF(struct trace_idle_place) places; /* devices (not HTA's), then streams */
	ARRAY_OF(struct trace_idle_gap) gaps;     /* of one place after the other, by time */
};

/* Returns 0 or -ENOMEM. */
int trace_idle_init(struct trace_idle *idle, const struct trace_view *view);
/* How long the gaps of one cause are, in ns. Returns 0 or -ENOMEM. */
int trace_idle_describe(const struct trace_idle *idle, const struct trace_idle_place *place,
	enum trace_idle_cause cause, struct trace_describe *ret_describe);
void trace_idle_done(struct trace_idle *idle);
#define _cleanup_trace_idle_ _cleanup_(trace_idle_done)
