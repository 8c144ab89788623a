/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a thread waits for, by its system call alone. For BPF and for user space. */
#pragma once

#include "arch/arch.h"
#include "wire/wait.h"

#include ARCH_HEADER(calls)

static inline __attribute__((always_inline)) int reason_of_system_call(__u64 number)
{
	switch (number) {
	ARCH_CASES_LOCK:
		return WIRE_WAIT_LOCK;
	ARCH_CASES_POLL:
		return WIRE_WAIT_POLL;
	ARCH_CASES_SLEEP:
		return WIRE_WAIT_SLEEP;
	ARCH_CASES_CHILD:
		return WIRE_WAIT_CHILD;
	ARCH_CASES_SOCKET:
		return WIRE_WAIT_SOCKET;
	ARCH_CASES_DISK:
		return WIRE_WAIT_DISK;
	ARCH_CASES_FILE_LOCK:
		return WIRE_WAIT_FILE_LOCK;
	default:
		return WIRE_WAIT_OTHER;
	}
}

/* Does an uninterruptible sleep in this call wait for a file or its folder? */
static inline __attribute__((always_inline)) bool looks_for_files(__u64 number)
{
	switch (number) {
	ARCH_CASES_FILES:
		return true;
	default:
		return false;
	}
}
