/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread that does not run waits for. */
#pragma once

/* The values are stored in captures: append only. */
enum wire_wait {
	WIRE_WAIT_NONE = 0, /* it runs: a CPU sample */
	WIRE_WAIT_CPU = 1,  /* could run, another thread has the CPU */
	WIRE_WAIT_LOCK = 2, /* futex */
	WIRE_WAIT_GIL = 3,  /* futex of Python's global interpreter lock */
	WIRE_WAIT_POLL = 4, /* poll, select, epoll */
	WIRE_WAIT_SLEEP = 5,
	WIRE_WAIT_PIPE = 6,
	WIRE_WAIT_SOCKET = 7,
	WIRE_WAIT_DISK = 8,   /* reads and writes of files, and calls that look for them */
	WIRE_WAIT_FAULT = 9,  /* page fault */
	WIRE_WAIT_CHILD = 10, /* wait4, waitid */
	WIRE_WAIT_STOPPED = 11,
	WIRE_WAIT_OTHER = 12,
	WIRE_WAIT_UNSEEN = 13,    /* ended, or went on, before its stack could be taken */
	WIRE_WAIT_FILE_LOCK = 14, /* flock, fcntl */
	WIRE_WAIT_UNKNOWN = 15,   /* uninterruptible, in a call that says nothing of the reason */
	WIRE_WAIT_MAX
};

#ifndef __bpf__
/* The stable names, used in reports and JSON; "unknown" when out of range. */
static inline const char *wire_wait_name(unsigned wait)
{
	static const char *const names[WIRE_WAIT_MAX] = {
		[WIRE_WAIT_NONE] = "running",
		[WIRE_WAIT_CPU] = "cpu",
		[WIRE_WAIT_LOCK] = "lock",
		[WIRE_WAIT_GIL] = "gil",
		[WIRE_WAIT_POLL] = "poll",
		[WIRE_WAIT_SLEEP] = "sleep",
		[WIRE_WAIT_PIPE] = "pipe",
		[WIRE_WAIT_SOCKET] = "socket",
		[WIRE_WAIT_DISK] = "disk",
		[WIRE_WAIT_FAULT] = "page_fault",
		[WIRE_WAIT_CHILD] = "child",
		[WIRE_WAIT_STOPPED] = "stopped",
		[WIRE_WAIT_OTHER] = "other",
		[WIRE_WAIT_UNSEEN] = "unseen",
		[WIRE_WAIT_FILE_LOCK] = "file_lock",
		[WIRE_WAIT_UNKNOWN] = "unknown",
	};

	return wait < WIRE_WAIT_MAX ? names[wait] : "unknown";
}
#endif
