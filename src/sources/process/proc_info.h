/* SPDX-License-Identifier: Apache-2.0 */
/* Small facts of a process from /proc: name, parent, arguments, cgroup, children. The process may
 * go at any moment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

struct proc_status {
	char state; /* 'Z': a zombie */
	uint32_t parent_pid;
	char name[64];
};

struct pid_list {
	ARRAY_OF(uint32_t) pids;
};

/* From /proc/PID/stat. -ESRCH when the process is gone. */
int proc_read_status(uint32_t pid, struct proc_status *ret_status);
/*
 * The arguments, one allocation: free() the returned vector. NULL with *ret_count 0 when there are
 * none or they cannot be read. Very long command lines are cut.
 */
char **proc_read_cmdline(uint32_t pid, uint32_t *ret_count);
/* The cgroup's path (of the unified hierarchy where there is one), malloc'ed; NULL when unknown. */
char *proc_read_cgroup(uint32_t pid);
/* Appends the processes that this process's threads started and that still live. Returns 0 or a
 * negative errno. */
int proc_list_children(uint32_t pid, struct pid_list *children);
/* Appends the process's threads. */
int proc_list_threads(uint32_t pid, struct pid_list *threads);
/* The thread's comm. -ESRCH when it is gone. */
int proc_read_thread_name(uint32_t pid, uint32_t tid, char ret_name[16]);
/* Appends every process of /proc. */
int proc_list_all(struct pid_list *processes);
/* True while the process has more than one thread, or one that is not its leader. */
bool proc_has_threads(uint32_t pid);
/* A thread whose address space can be read: the leader, or another one when the leader ended. 0
 * when none. */
uint32_t proc_living_thread(uint32_t pid);
