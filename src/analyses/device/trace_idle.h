/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why devices were idle: each gap is charged to what the work that ended it had to wait for. HTA's
 * idle time breakdown is this, too.
 *
 * Ours: a device is idle while none of its streams is busy, and a stream while no work of it runs.
 * The time of a gap before its next work was being launched is the host's; where the launching
 * thread has samples it is told apart further by what the thread did. The rest of a gap that began
 * unlaunched is the launch's. What of these parts the thread spent in calls that block is a cause
 * of its own; so is a longer gap in which the launch itself, a copy, was blocked. HTA looks at
 * streams alone, takes the end of the last work that started, not the last end, so that gaps may be
 * negative, and charges a gap as a whole. docs/gpu.md has the definitions for readers.
 */
#pragma once

#include "analyses/trace_describe.h"
#include "analyses/trace_view.h"

enum trace_idle_cause {
	/* The next work was not being launched yet: without a sample of the thread, or with one. */
	TRACE_IDLE_HOST,
	TRACE_IDLE_RUNNING,
	TRACE_IDLE_GIL,
	TRACE_IDLE_LOCK,
	TRACE_IDLE_SLEEP,
	TRACE_IDLE_DISK,
	TRACE_IDLE_CHANNEL, /* a pipe, a socket, or poll */
	TRACE_IDLE_CPU,
	TRACE_IDLE_WAIT,    /* another wait */
	TRACE_IDLE_BLOCKED, /* the thread was in a call that blocks (blocking.h) */
	TRACE_IDLE_LAUNCH,  /* its launch had begun after the gap did: what launching takes */
	TRACE_IDLE_KERNEL,  /* it was launched, and the gap is shorter than IDLE_KERNEL_WAIT_NS */
	TRACE_IDLE_OTHER,   /* it was launched: it waited for an event, or another stream */
	TRACE_IDLE_UNKNOWN, /* its launch is not known */
	TRACE_IDLE_CAUSE_MAX,
};

static inline bool trace_idle_is_host(enum trace_idle_cause cause)
{
	return cause <= TRACE_IDLE_WAIT;
}

/* Of all causes: the host's together. */
int64_t trace_idle_host_ns(const int64_t by_cause_ns[TRACE_IDLE_CAUSE_MAX]);

/* The name in JSON and in stacks: "running" … HTA's "host_wait", "kernel_wait" and "other", too. */
const char *trace_idle_cause_name(enum trace_idle_cause cause);
/* The frame that ends a stack: "[idle: running]". */
const char *trace_idle_cause_leaf(enum trace_idle_cause cause);
/* For a table: "Running". */
const char *trace_idle_cause_title(enum trace_idle_cause cause);
const char *trace_idle_cause_meaning(enum trace_idle_cause cause);

/* Of a device, or of a stream. */
struct trace_idle_place {
	uint32_t device, stream; /* indices; stream MODEL_NONE: of the whole device */
	int64_t idle_ns;         /* the sum of all causes */
	uint64_t gap_count;
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
	/* In a recording, MODEL_NONE: none. */
	uint32_t sample; /* that it rests on */
	uint32_t stack;  /* of the sample, or of the launch of the next work */
	enum trace_idle_cause cause;
};

struct trace_idle {
	ARRAY_OF(struct trace_idle_place) places; /* devices (not HTA's), then streams */
	ARRAY_OF(struct trace_idle_gap) gaps;     /* of one place after the other, by time */
};

/* The place of the device of this name, with all its streams; NULL: there is none. */
const struct trace_idle_place *trace_idle_of_device(
	const struct trace_idle *idle, const struct trace_view *view, const char *name);
/* Returns 0 or -ENOMEM. */
int trace_idle_init(struct trace_idle *idle, const struct trace_view *view);
/* How long the parts of gaps are that have one cause, in ns. Returns 0 or -ENOMEM. */
int trace_idle_describe(const struct trace_idle *idle, const struct trace_idle_place *place,
	enum trace_idle_cause cause, struct trace_describe *ret_describe);
void trace_idle_done(struct trace_idle *idle);
#define _cleanup_trace_idle_ _cleanup_(trace_idle_done)
