/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a thread waits, and in which system call, as /proc has it: without stopping the thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/wait.h"

struct waiting {
	bool is_known;        /* else it ran, or may not be read */
	char state;           /* 'S', 'D', 'T', … as in /proc/PID/stat */
	uint64_t system_call; /* -1: none */
	uint64_t first_argument;
	uint64_t sp, pc;
};

/* Of a thread that has ended, nothing is known. */
struct waiting waiting_read(uint32_t pid, uint32_t tid);
/* Reads a line of /proc/PID/syscall into all but the state; false when it says "running". */
bool waiting_parse(const char *line, struct waiting *ret_waiting);
/* Would the call fail with EINTR if its thread were stopped for a moment? */
bool waiting_is_not_restarted(const struct waiting *waiting, uint32_t pid);
enum wire_wait waiting_reason(const struct waiting *waiting, uint32_t pid);
