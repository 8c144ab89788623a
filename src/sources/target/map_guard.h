/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapped files that somebody else may cut while we read them: what is beyond their end reads as
 * zeros, and the guard says so, where the kernel would have ended us with SIGBUS.
 */
#pragma once

#include <signal.h>
#include <stddef.h>

struct map_guard {
	void *memory; /* whole pages */
	size_t bytes;
	volatile sig_atomic_t is_cut; /* the mapping is memory of ours by now */
};

/* Takes the process's SIGBUS; those of unguarded memory go where they went before. */
void map_guard_install(void);
/* Until map_guard_leave() this thread touches that memory. One at a time. */
void map_guard_enter(struct map_guard *guard);
void map_guard_leave(void);
