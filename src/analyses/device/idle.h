/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why devices were idle: each gap is charged to what the work that ended it had to wait for.
 *
 * A device is idle while none of its streams is busy, and a stream while no work of it runs.
 * The time of a gap before its next work was being launched is the host's; where the launching
 * thread has samples it is distinguished further by what the thread did. The rest of a gap that
 * began unlaunched is the launch's. What of these parts the thread spent in calls that block is a
 * cause of its own; so is a longer gap in which the launch itself, a copy, was blocked. What is
 * launched may wait for an event that other work has yet to reach (syncs.h). docs/gpu.md has the
 * definitions for readers.
 */
#pragma once

#include "analyses/device/syncs.h"
#include "analyses/statistics.h"
#include "analyses/trace_view.h"

enum device_idle_cause {
	/* The next work was not being launched yet: without a sample of the thread, or with one. */
	DEVICE_IDLE_HOST,
	DEVICE_IDLE_RUNNING,
	DEVICE_IDLE_GIL,
	DEVICE_IDLE_LOCK,
	DEVICE_IDLE_SLEEP,
	DEVICE_IDLE_DISK,
	DEVICE_IDLE_CHANNEL, /* a pipe, a socket, or poll */
	DEVICE_IDLE_CPU,
	DEVICE_IDLE_WAIT,    /* another wait */
	DEVICE_IDLE_BLOCKED, /* the thread was in a call that blocks (blocking.h) */
	DEVICE_IDLE_LAUNCH,  /* its launch had begun after the gap did: what launching takes */
	DEVICE_IDLE_KERNEL,  /* it was launched, and the gap is shorter than IDLE_KERNEL_WAIT_NS */
	DEVICE_IDLE_EVENT,   /* its stream waited for an event, up to which other work ran */
	DEVICE_IDLE_OTHER,   /* it was launched: what it waited for is not known */
	DEVICE_IDLE_UNKNOWN, /* its launch is not known */
	DEVICE_IDLE_CAUSE_MAX,
};

static inline bool device_idle_is_host(enum device_idle_cause cause)
{
	return cause <= DEVICE_IDLE_WAIT;
}

/* Of all causes: the host's together. */
int64_t device_idle_host_ns(const int64_t by_cause_ns[DEVICE_IDLE_CAUSE_MAX]);

/* The name in JSON and in stacks: "host_wait", "running" … */
const char *device_idle_cause_name(enum device_idle_cause cause);
/* The frame that ends a stack: "[idle: running]". */
const char *device_idle_cause_leaf(enum device_idle_cause cause);
/* For a table: "Running". */
const char *device_idle_cause_title(enum device_idle_cause cause);
const char *device_idle_cause_meaning(enum device_idle_cause cause);

#define DEVICE_IDLE_NOT_COUNTED UINT64_MAX

/* Of a device, or of a stream. */
struct device_idle_place {
	uint32_t device, stream; /* indices; stream MODEL_NONE: of the whole device */
	int64_t idle_ns;         /* the sum of all causes */
	uint64_t gap_count;      /* or DEVICE_IDLE_NOT_COUNTED */
	int64_t by_cause_ns[DEVICE_IDLE_CAUSE_MAX];
	uint32_t first, count; /* of `gaps` */
	/* There are such gaps, if of no length. */
	bool is_listed[DEVICE_IDLE_CAUSE_MAX];
};

/* A gap of a place, or a part of one, with one cause. */
struct device_idle_gap {
	int64_t start_ns, end_ns;
	uint32_t place; /* index in places */
	uint32_t next;  /* index of view.works: it ended the gap */
	uint32_t call;  /* of DEVICE_IDLE_BLOCKED: its row; else MODEL_NONE */
	uint32_t sync;  /* what the call or the stream waited for: index in syncs, + 1; 0: none */
	/* In a recording, MODEL_NONE: none. */
	uint32_t sample; /* that it rests on */
	uint32_t stack;  /* of the sample, or of the call that blocked or launched the work */
	enum device_idle_cause cause;
};

struct device_idle {
	ARRAY_OF(struct device_idle_place) places; /* devices, then streams; or streams alone */
	ARRAY_OF(struct device_idle_gap) gaps;     /* of one place after the other, by time */
	struct device_syncs syncs;
};

/* Returns 0 or -ENOMEM. */
int device_idle_init(struct device_idle *idle, const struct trace_view *view);
/* For those who find places and gaps otherwise: what follows when all are there, those of one place
 * after the other. */
void device_idle_finish(struct device_idle *idle);
/* How long the parts of gaps are that have one cause, in ns. Returns 0 or -ENOMEM. */
int device_idle_describe(const struct device_idle *idle, const struct device_idle_place *place,
	enum device_idle_cause cause, struct trace_describe *ret_describe);
/* What the gap's call or stream waited for, as a text; NULL: not known, or it is no such gap. */
const char *device_idle_target(const struct device_idle *idle, const struct device_idle_gap *gap);
void device_idle_done(struct device_idle *idle);
#define _cleanup_device_idle_ _cleanup_(device_idle_done)
