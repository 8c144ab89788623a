/* SPDX-License-Identifier: Apache-2.0 */
/* A process stopped by ptrace, to unwind its threads: for tests and for the comparison with other
 * unwinders. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errmsg.h"
#include "unwind/stack.h"

struct stopped_process;

/* Prepares for `pid`, which keeps running. Every later call must come from the same thread. */
int stopped_process_open(struct stopped_process **ret_process, pid_t pid, struct errmsg *err);
/* Lets go of the process and frees everything. Accepts NULL. */
struct stopped_process *stopped_process_free(struct stopped_process *process);
void stopped_process_freep(struct stopped_process **process);
#define _cleanup_stopped_process_ _cleanup_(stopped_process_freep)

/* Stops every thread and reads the mappings; tables of files already known are kept. -ESRCH when it
 * is gone. */
int stopped_process_stop(struct stopped_process *process, struct errmsg *err);
/* Lets all threads go on, detached. */
void stopped_process_resume(struct stopped_process *process);

size_t stopped_process_thread_count(const struct stopped_process *process);
pid_t stopped_process_thread(const struct stopped_process *process, size_t index);
/* A thread's registers. Returns 0 or a negative errno. */
int stopped_process_registers(pid_t tid, struct wire_stack_copy *ret_registers);

/* Memory and mappings, for unwind_user_stack(). Valid as long as the process object. */
const struct unwind_target *stopped_process_target(const struct stopped_process *process);
/* The file's path as /proc/PID/maps says it, and the address in the file; false for unmapped
 * addresses. */
bool stopped_process_describe(const struct stopped_process *process, uint64_t address,
	const char **ret_path, uint64_t *ret_vaddr);
