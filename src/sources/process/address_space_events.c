/* SPDX-License-Identifier: Apache-2.0 */
/* Forks, mappings, names, exits and losses, as side-band events report them, in order of time. */
#include <errno.h>
#include <stdint.h>

#include "base/file.h"
#include "sources/process/address_space_state.h"

/* A process whose beginning was not seen: from /proc, or empty when it is gone already. */
static int add_unseen(struct address_spaces *spaces, const struct sideband_event *event)
{
	int error = spaces_add_or_refresh(spaces, event->pid);
	struct tracked_process *tracked;

	if (error == 0 || error == -ENOMEM)
		return error;
	tracked = tracked_add(spaces, event->pid, event->parent_pid, event->time_ns);
	if (!tracked)
		return -ENOMEM;
	tracked->known_at_ns = 0; /* this event is still to be applied */
	return 0;
}

static int fork_process(struct address_spaces *spaces, const struct tracked_process *parent,
	const struct sideband_event *event)
{
	struct tracked_process *child =
		tracked_add(spaces, event->pid, event->parent_pid, event->time_ns);

	if (!child || process_copy_description(&child->process, &parent->process) < 0)
		return -ENOMEM;
	return mapping_list_fork(&child->process, &parent->process, &spaces->listener);
}

static int apply_fork(
	struct address_spaces *spaces, const struct sideband_event *event, bool only_descendants)
{
	struct tracked_process *child = tracked_find(spaces, event->pid), *parent;

	if (event->pid == event->parent_pid) { /* a thread */
		if (child)
			child->may_have_threads = true;
		return 0;
	}
	if (child && event->time_ns <= child->known_at_ns)
		return 0;
	if (child) /* the pid is used again */
		tracked_forget(spaces, child);
	parent = tracked_find(spaces, event->parent_pid);
	if (!parent)
		return only_descendants ? 0 : add_unseen(spaces, event);
	/* What we know of the parent may be younger than the fork: it may run another program by
	 * now. */
	if (event->time_ns <= parent->known_at_ns) {
		int error = spaces_add_or_refresh(spaces, event->pid);

		if (error == 0 || error == -ENOMEM)
			return error;
	}
	return fork_process(spaces, parent, event);
}

/* The process that an event concerns; NULL when it does not concern us, or is older than what we
 * know. */
static int find_concerned(struct address_spaces *spaces, const struct sideband_event *event,
	bool only_descendants, struct tracked_process **ret_tracked)
{
	struct tracked_process *tracked = tracked_find(spaces, event->pid);

	*ret_tracked = NULL;
	if (!tracked && only_descendants)
		return 0;
	if (!tracked) {
		if (add_unseen(spaces, event) < 0)
			return -ENOMEM;
		tracked = tracked_find(spaces, event->pid);
	}
	if (event->time_ns > tracked->known_at_ns)
		*ret_tracked = tracked;
	return 0;
}

static int apply_mmap(
	struct address_spaces *spaces, const struct sideband_event *event, bool only_descendants)
{
	struct mapping mapping = {
		.start = event->address,
		.end = event->address + event->length,
		.file_offset = event->inode || event->build_id.length ? event->file_offset : 0,
	};
	struct file_sighting sighting = {
		.name = event->name,
		.device = event->device,
		.inode = event->inode,
		.inode_generation = event->inode_generation,
		.build_id = &event->build_id,
		.pid = event->pid,
		.start = mapping.start,
		.end = mapping.end,
	};
	struct tracked_process *tracked;
	int error = find_concerned(spaces, event, only_descendants, &tracked);

	if (error < 0 || !tracked || mapping.end <= mapping.start)
		return error;
	process_revive(&tracked->process);
	error = spaces_resolve_file(spaces, &sighting, &mapping);
	return error < 0 ? error : mapping_list_map(&tracked->process, &mapping, &spaces->listener);
}

/* exec leaves nothing mapped but the vsyscall page, which belongs to the machine and is announced
 * by no event. */
static int clear_for_exec(struct address_spaces *spaces, struct process *process)
{
	struct mapping last = {0};

	if (process->mapping_count)
		last = process->mappings[process->mapping_count - 1];
	mapping_list_clear(process, &spaces->listener);
	if (last.kind != MAPPING_VSYSCALL)
		return 0;
	return mapping_list_map(process, &last, &spaces->listener);
}

static int apply_comm(
	struct address_spaces *spaces, const struct sideband_event *event, bool only_descendants)
{
	struct tracked_process *tracked;
	int error;

	if (!event->is_exec && event->tid != event->pid)
		return 0; /* a thread's name */
	error = find_concerned(spaces, event, only_descendants, &tracked);
	if (error < 0 || !tracked)
		return error;
	process_set_name(&tracked->process, event->name);
	if (!event->is_exec)
		return 0;
	process_revive(&tracked->process); /* a thread that runs exec becomes the leader after the
				      old one's exit */
	tracked->leader_ended = tracked->may_have_threads = false;
	tracked->process.exec_count++;
	process_read_description(&tracked->process, true);
	return clear_for_exec(spaces, &tracked->process);
}

/* A leader may end before its threads: the process ends with the last of them. */
static int apply_exit(struct address_spaces *spaces, const struct sideband_event *event)
{
	struct tracked_process *tracked = tracked_find(spaces, event->pid);

	if (!tracked || tracked->process.exited || event->time_ns <= tracked->known_at_ns)
		return 0;
	if (event->tid == event->pid)
		tracked->leader_ended = true;
	if (!tracked->leader_ended)
		return 0;
	if (tracked->may_have_threads && proc_has_threads(event->pid))
		return 0;
	return tracked_mark_exited(spaces, tracked, event->time_ns);
}

static int list_living(const struct address_spaces *spaces, struct pid_list *living)
{
	size_t position = 0;
	uint64_t pid, value;

	while (map_u64_next(&spaces->processes, &position, &pid, &value)) {
		const struct tracked_process *tracked =
			(const struct tracked_process *)(uintptr_t)value;

		if (!tracked->process.exited && array_append(&living->pids, (uint32_t)pid) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int refresh_living(struct address_spaces *spaces, const struct pid_list *living)
{
	array_foreach (&living->pids, pid) {
		int error = spaces_add_or_refresh(spaces, *pid);

		if (error == -ESRCH)
			error = tracked_mark_exited(
				spaces, tracked_find(spaces, *pid), spaces->refreshed_ns);
		if (error == -ENOMEM)
			return error;
	}
	return 0;
}

/* What the lost records held is in /proc, unless it is over. */
static int apply_lost(
	struct address_spaces *spaces, const struct sideband_event *event, bool only_descendants)
{
	struct pid_list living = {0};
	int error;

	if (event->time_ns <= spaces->refreshed_ns)
		return 0; /* the loss was before the last refresh: other CPUs' share of the same
			     storm */
	spaces->refreshed_ns = monotonic_now_ns();
	error = list_living(spaces, &living);
	if (error == 0)
		error = refresh_living(spaces, &living);
	if (error == 0)
		error = only_descendants ? spaces_add_descendants(spaces, &living)
					 : address_spaces_add_all(spaces);
	array_done(&living.pids);
	return error == -ENOMEM ? error : 0;
}

int address_spaces_apply(
	struct address_spaces *spaces, const struct sideband_event *event, bool only_descendants)
{
	bool names_process = event->pid != 0 && event->pid != UINT32_MAX;

	if (event->type == SIDEBAND_LOST)
		return apply_lost(spaces, event, only_descendants);
	if (!names_process) /* of another PID namespace, or so late in its end that it has no number
			     */
		return 0;
	switch (event->type) {
	case SIDEBAND_MMAP:
		return apply_mmap(spaces, event, only_descendants);
	case SIDEBAND_COMM:
		return apply_comm(spaces, event, only_descendants);
	case SIDEBAND_FORK:
		return apply_fork(spaces, event, only_descendants);
	case SIDEBAND_EXIT:
		return apply_exit(spaces, event);
	default:
		return 0; /* SIDEBAND_KSYMBOL is the kernel's address space */
	}
}
