/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/cpu/thread_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sources/process/perf_ring.h"
#include "sources/process/proc_info.h"

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char name[];
};

struct task_record {
	struct perf_event_header header;
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time_ns;
};

static struct thread_name *find(const struct thread_names *names, uint32_t tid)
{
	uint64_t index;

	return map_u64_get(&names->index_of_tid, tid, &index) ? &names->entries.items[index] : NULL;
}

/* The thread's entry, empty when it is new; NULL when out of memory. Moves other entries. */
static struct thread_name *find_or_add(struct thread_names *names, uint32_t tid)
{
	struct thread_name *known = find(names, tid), empty = {0};
	uint32_t index;

	if (known)
		return known;
	if (array_reserve(&names->entries, 1) < 0)
		return NULL;
	index = names->unused.count ? names->unused.items[names->unused.count - 1]
				    : (uint32_t)names->entries.count;
	if (map_u64_set(&names->index_of_tid, tid, index) < 0)
		return NULL;
	if (names->unused.count)
		names->unused.count--;
	else
		names->entries.count++;
	names->entries.items[index] = empty;
	return &names->entries.items[index];
}

static int set_name(struct thread_names *names, uint32_t tid, const char *name)
{
	struct thread_name *entry = find_or_add(names, tid);

	if (!entry)
		return -ENOMEM;
	memset(entry->name, 0, sizeof(entry->name));
	memcpy(entry->name, name, strnlen(name, sizeof(entry->name) - 1));
	return 0;
}

int thread_names_read(struct thread_names *names, uint32_t pid)
{
	struct pid_list threads = {0};
	int error = proc_list_threads(pid, &threads);

	for (size_t i = 0; error == 0 && i < threads.pids.count; i++) {
		char name[THREAD_NAME_BYTES];

		if (proc_read_thread_name(pid, threads.pids.items[i], name) == 0)
			error = set_name(names, threads.pids.items[i], name);
	}
	array_done(&threads.pids);
	return error == -ENOMEM ? error : 0;
}

static int apply_comm(struct thread_names *names, const struct perf_event_header *header)
{
	const struct comm_record *record = (const struct comm_record *)header;
	const char *name = perf_record_text(header, sizeof(*record));
	int error;

	if (!name)
		return 0;
	error = set_name(names, record->tid, name);
	if (error == 0 && header->misc & PERF_RECORD_MISC_COMM_EXEC)
		find(names, record->tid)->exec_id++;
	return error;
}

static int apply_fork(struct thread_names *names, const struct task_record *record)
{
	struct thread_name *child = find_or_add(names, record->tid);
	const struct thread_name *parent = find(names, record->parent_tid);

	if (!child)
		return -ENOMEM;
	*child = parent ? *parent : (struct thread_name){0};
	return 0;
}

/* Leaders stay: their threads may outlive them, and go by their names. The pid's next user replaces
 * them. */
static int apply_exit(struct thread_names *names, const struct task_record *record)
{
	uint64_t index;

	if (record->tid == record->pid || !map_u64_get(&names->index_of_tid, record->tid, &index))
		return 0;
	if (array_append(&names->unused, (uint32_t)index) < 0)
		return -ENOMEM;
	map_u64_remove(&names->index_of_tid, record->tid);
	return 0;
}

int thread_names_apply(struct thread_names *names, const struct perf_event_header *header)
{
	const struct task_record *task = (const struct task_record *)header;

	if (header->type == PERF_RECORD_COMM)
		return apply_comm(names, header);
	if (header->size < sizeof(*task))
		return 0;
	if (header->type == PERF_RECORD_FORK)
		return apply_fork(names, task);
	return header->type == PERF_RECORD_EXIT ? apply_exit(names, task) : 0;
}

void thread_names_get(const struct thread_names *names, uint32_t pid, uint32_t tid,
	char ret_process_name[THREAD_NAME_BYTES], char ret_thread_name[THREAD_NAME_BYTES],
	uint32_t *ret_exec_id)
{
	static const struct thread_name unknown;
	const struct thread_name *leader = find(names, pid), *thread = find(names, tid);

	leader = leader ? leader : &unknown;
	memcpy(ret_process_name, leader->name, THREAD_NAME_BYTES);
	memcpy(ret_thread_name, thread ? thread->name : leader->name, THREAD_NAME_BYTES);
	*ret_exec_id = leader->exec_id;
}

bool thread_names_knows(const struct thread_names *names, uint32_t tid)
{
	return map_u64_get(&names->index_of_tid, tid, NULL);
}

void thread_names_forget(struct thread_names *names)
{
	thread_names_done(names);
	*names = (struct thread_names){0};
}

void thread_names_done(struct thread_names *names)
{
	map_u64_done(&names->index_of_tid);
	array_done(&names->entries);
	array_done(&names->unused);
}
