/* SPDX-License-Identifier: Apache-2.0 */
/* The perf sampler's memory of how threads and processes are called; the kernel tells each change
 * in its rings. */
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"

#define THREAD_NAME_BYTES 16 /* TASK_COMM_LEN */

struct thread_name {
	uint32_t exec_id; /* of a leader: how many programs its process began since we know it */
	char name[THREAD_NAME_BYTES];
};

/* Zero-initialise. */
struct thread_names {
	struct map_u64 index_of_tid;
	ARRAY_OF(struct thread_name) entries;
	ARRAY_OF(uint32_t) unused; /* entries of threads that ended */
};

/* Takes the names of the process's threads from /proc. Returns 0, also when it is gone, or -ENOMEM.
 */
int thread_names_read(struct thread_names *names, uint32_t pid);
/* Learns from PERF_RECORD_COMM, _FORK and _EXIT; ignores other records. Returns 0 or -ENOMEM. */
int thread_names_apply(struct thread_names *names, const struct perf_event_header *header);
bool thread_names_knows(const struct thread_names *names, uint32_t tid);
/* Of all threads: they are unknown again. */
void thread_names_forget(struct thread_names *names);
/* Unknown names are empty. */
void thread_names_get(const struct thread_names *names, uint32_t pid, uint32_t tid,
	char ret_process_name[THREAD_NAME_BYTES], char ret_thread_name[THREAD_NAME_BYTES],
	uint32_t *ret_exec_id);
void thread_names_done(struct thread_names *names);
