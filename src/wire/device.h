/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work as an injected library tells it: what was launched, by whom, and when it ran. A
 * launch, its device activity and the stack that the marker's probe takes (struct wire_sample with
 * WIRE_SAMPLE_LAUNCH) have one correlation id, unique in their process.
 */
#pragma once

#include "wire/record.h"

/* The values are stored in captures: append only. */
enum wire_device_kind {
	WIRE_DEVICE_NONE = 0,
	WIRE_DEVICE_KERNEL = 1,
	WIRE_DEVICE_READ = 2,  /* device to host */
	WIRE_DEVICE_WRITE = 3, /* host to device */
	WIRE_DEVICE_COPY = 4,
	WIRE_DEVICE_FILL = 5,
	WIRE_DEVICE_MAP = 6,
	WIRE_DEVICE_UNMAP = 7,
	/* The host waits: no device activity follows. */
	WIRE_DEVICE_FINISH = 8, /* for a queue */
	WIRE_DEVICE_WAIT = 9,   /* for events */
	WIRE_DEVICE_MAX
};

/* Why a launch has no device activity. Append only. */
enum wire_device_untimed {
	WIRE_DEVICE_TIMED = 0,
	WIRE_DEVICE_NO_PROFILING = 1, /* its queue cannot tell times */
	WIRE_DEVICE_NO_CONTEXT = 2,   /* too many were in flight */
	WIRE_DEVICE_FAILED = 3,       /* the launch, or the work, returned an error */
	WIRE_DEVICE_NO_EVENT = 4,     /* the runtime refused to tell of its end */
	WIRE_DEVICE_UNTIMED_MAX
};

/*
 * WIRE_RECORD_DEVICE_LAUNCH: a call of the program that no activity tells of: a wait, or a launch
 * that is not timed.
 */
struct wire_device_launch {
	struct wire_record record;
	__u64 correlation;       /* 0 for waits */
	__u64 enter_ns, exit_ns; /* CLOCK_MONOTONIC */
	__u32 tid;
	__u32 queue;  /* id; 0: unknown */
	__u8 kind;    /* enum wire_device_kind */
	__u8 untimed; /* enum wire_device_untimed */
	__u8 reserved[6];
};

_Static_assert(sizeof(struct wire_device_launch) == 48, "wire_device_launch is part of the format");

/*
 * WIRE_RECORD_DEVICE_ACTIVITY: work that ended. The first four times are in the device's clock;
 * `before_ns` and `after_ns` are CLOCK_MONOTONIC around the call that queued it, which makes each
 * activity a pair of clocks, too.
 */
struct wire_device_activity {
	struct wire_record record;
	__u64 correlation;
	__u64 queued, submit, start, end;
	__u64 before_ns, after_ns;
	__u64 enter_ns;       /* of the call, before its stack was taken */
	__u64 bytes;          /* of copies and fills */
	__u64 global_size[3]; /* of kernels */
	__u32 local_size[3];  /* 0: the runtime's choice */
	__u32 device, queue;  /* ids */
	__u32 name;           /* id; 0: none */
	__u32 tid;            /* that launched it */
	__u8 kind;            /* enum wire_device_kind */
	__u8 failed;
	__u8 reserved[2];
};

_Static_assert(
	sizeof(struct wire_device_activity) == 136, "wire_device_activity is part of the format");

/*
 * WIRE_RECORD_DEVICE_NAME, _DEVICE, _QUEUE: what an id stands for, in this process. The text
 * follows, padded to 8 bytes, without a terminator.
 */
struct wire_device_definition {
	struct wire_record record;
	__u32 id;
	__u32 device; /* of a queue: the id of its device */
	__u32 text_bytes;
	__u32 reserved;
};

_Static_assert(sizeof(struct wire_device_definition) == 24,
	"wire_device_definition is part of the format");

#define WIRE_DEVICE_TEXT_BYTES 480
#define WIRE_DEVICE_MAX_BYTES  512 /* the longest of these records */

_Static_assert(
	sizeof(struct wire_device_definition) + WIRE_DEVICE_TEXT_BYTES <= WIRE_DEVICE_MAX_BYTES,
	"definitions fit");

#ifndef __bpf__
/* The stable names, used in reports and JSON; "unknown" when out of range. */
static inline const char *wire_device_kind_name(unsigned kind)
{
	static const char *const names[WIRE_DEVICE_MAX] = {
		[WIRE_DEVICE_NONE] = "none",
		[WIRE_DEVICE_KERNEL] = "kernel",
		[WIRE_DEVICE_READ] = "read",
		[WIRE_DEVICE_WRITE] = "write",
		[WIRE_DEVICE_COPY] = "copy",
		[WIRE_DEVICE_FILL] = "fill",
		[WIRE_DEVICE_MAP] = "map",
		[WIRE_DEVICE_UNMAP] = "unmap",
		[WIRE_DEVICE_FINISH] = "finish",
		[WIRE_DEVICE_WAIT] = "wait",
	};

	return kind < WIRE_DEVICE_MAX ? names[kind] : "unknown";
}

static inline const char *wire_device_untimed_name(unsigned untimed)
{
	static const char *const names[WIRE_DEVICE_UNTIMED_MAX] = {
		[WIRE_DEVICE_TIMED] = "timed",
		[WIRE_DEVICE_NO_PROFILING] = "no_profiling",
		[WIRE_DEVICE_NO_CONTEXT] = "too_many_in_flight",
		[WIRE_DEVICE_FAILED] = "failed",
		[WIRE_DEVICE_NO_EVENT] = "no_event",
	};

	return untimed < WIRE_DEVICE_UNTIMED_MAX ? names[untimed] : "unknown";
}
#endif
