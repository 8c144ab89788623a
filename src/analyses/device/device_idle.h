/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why devices were idle: each gap between a device's pieces of work is charged to what the thread
 * that gave it its next work did meanwhile. docs/gpu.md has the definitions for readers.
 */
#pragma once

#include "base/array.h"
#include "model/model.h"

enum device_idle_cause {
	DEVICE_IDLE_RUNNING,
	DEVICE_IDLE_GIL,
	DEVICE_IDLE_LOCK,
	DEVICE_IDLE_SLEEP,
	DEVICE_IDLE_DISK,
	DEVICE_IDLE_CHANNEL, /* a pipe, a socket, or poll */
	DEVICE_IDLE_CPU,
	DEVICE_IDLE_OTHER,   /* another wait */
	DEVICE_IDLE_DEVICE,  /* in a call that waits for a device */
	DEVICE_IDLE_COPY,    /* in the call of the next copy or fill, which blocks */
	DEVICE_IDLE_QUEUED,  /* the next work was queued, and had not started */
	DEVICE_IDLE_BETWEEN, /* likewise, in gaps shorter than IDLE_KERNEL_WAIT_NS */
	DEVICE_IDLE_UNKNOWN, /* no sample of the thread, or the thread is not known */
	DEVICE_IDLE_MAX,
};

/* The name in JSON and in stacks: "running", "gil" … */
const char *device_idle_cause_name(enum device_idle_cause cause);
/* The frame that ends a stack: "[idle: running]". */
const char *device_idle_cause_leaf(enum device_idle_cause cause);
/* What it means, for a table: "Python's interpreter lock". */
const char *device_idle_cause_meaning(enum device_idle_cause cause);

/*
 * A part of a gap with one cause. Those of a gap follow each other without holes: their times add
 * up to the idle time.
 */
struct device_idle_span {
	uint64_t start_ns, end_ns;
	uint32_t device;  /* index */
	uint32_t next;    /* work, which ended the gap: index */
	uint32_t process; /* of the next work */
	uint32_t thread;  /* that launched the next work; MODEL_NONE: not known */
	uint32_t sample;  /* it rests on; MODEL_NONE: on none */
	uint32_t stack;   /* the sample's, or the next work's; MODEL_NONE: none */
	enum device_idle_cause cause;
};

/* All work of devices of one name: they are one, as in analyses/device/device_work.h. */
struct device_idle_device {
	const char *name; /* "" when unknown */
	uint64_t span_ns; /* from the start of its first work to the end of the last, of each window
			   */
	uint64_t end_ns;  /* of the last */
	uint64_t idle_ns; /* no work ran */
	uint64_t gaps, samples;
	uint64_t by_cause[DEVICE_IDLE_MAX]; /* they add up to idle_ns */
	/* The longest idle time in one call that blocks; 0: none blocked. And its stack. */
	uint64_t longest_block_ns;
	uint32_t longest_block_stack; /* index; MODEL_NONE: not known */
};

/* In calls that block: waits for the device, and copies. */
static inline uint64_t device_idle_blocked_ns(const struct device_idle_device *device)
{
	return device->by_cause[DEVICE_IDLE_DEVICE] + device->by_cause[DEVICE_IDLE_COPY];
}

/* Idle time of one device, by cause and line (see analyses/cpu/charge.h). */
struct device_idle_row {
	uint32_t device;
	uint32_t frame; /* MODEL_NONE: not known */
	enum device_idle_cause cause;
	uint64_t time_ns, gaps;
	uint64_t samples; /* that the time rests on, each counted once */
};

struct device_idle {
	ARRAY_OF(struct device_idle_device) devices; /* in order of their first work */
	ARRAY_OF(struct device_idle_span) spans;     /* gap by gap */
	ARRAY_OF(struct device_idle_row) rows;       /* by device, then most time first */
};

/* Before model_weigh(), which changes samples. Returns 0 or -ENOMEM. Strings are the model's. */
int device_idle_init(struct device_idle *idle, const struct model *model);
void device_idle_done(struct device_idle *idle);
#define _cleanup_device_idle_ _cleanup_(device_idle_done)
