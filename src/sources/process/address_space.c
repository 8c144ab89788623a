/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "sources/process/address_space_state.h"

struct tracked_process *tracked_find(const struct address_spaces *spaces, uint32_t pid)
{
	uint64_t value;

	if (!map_u64_get(&spaces->processes, pid, &value))
		return NULL;
	return (struct tracked_process *)(uintptr_t)value;
}

static void free_tracked(struct tracked_process *tracked)
{
	if (!tracked)
		return;
	free(tracked->process.cmdline);
	free(tracked->process.cgroup);
	free(tracked->process.mappings);
	free(tracked);
}

struct tracked_process *tracked_add(
	struct address_spaces *spaces, uint32_t pid, uint32_t parent_pid, uint64_t now_ns)
{
	struct tracked_process *tracked = calloc(1, sizeof(*tracked));

	if (!tracked)
		return NULL;
	tracked->process.pid = pid;
	tracked->process.parent_pid = parent_pid;
	tracked->process.first_seen_ns = now_ns;
	tracked->process.ranks = PROC_RANKS_UNKNOWN;
	tracked->known_at_ns = now_ns;
	if (map_u64_set(&spaces->processes, pid, (uintptr_t)tracked) == 0)
		return tracked;
	free_tracked(tracked);
	return NULL;
}

void tracked_forget(struct address_spaces *spaces, struct tracked_process *tracked)
{
	mapping_list_clear(&tracked->process, &spaces->listener);
	map_u64_remove(&spaces->processes, tracked->process.pid);
	free_tracked(tracked);
}

int tracked_mark_exited(
	struct address_spaces *spaces, struct tracked_process *tracked, uint64_t now_ns)
{
	struct exited_process exited = {.pid = tracked->process.pid, .exited_ns = now_ns};

	if (tracked->process.exited)
		return 0;
	tracked->process.exited = true;
	tracked->process.exited_ns = now_ns;
	return array_append(&spaces->exited, exited);
}

/* A process whose leader ended was taken for exited, and does something after all. */
void process_revive(struct process *process)
{
	process->exited = false;
	process->exited_ns = 0;
}

void process_set_name(struct process *process, const char *name)
{
	snprintf(process->name, sizeof(process->name), "%s", name);
}

/*
 * A process that is gone, or another user's, has neither: that is no error, and what is known
 * stays. Only the arguments of another program are forgotten in any case.
 */
void process_read_description(struct process *process, bool is_new_program)
{
	uint32_t count;
	char **cmdline = proc_read_cmdline(process->pid, &count);
	char *cgroup = proc_read_cgroup(process->pid);
	struct proc_ranks ranks = proc_read_ranks(process->pid);

	if (ranks.rank >= 0 || is_new_program)
		process->ranks = ranks;
	if (cmdline || is_new_program) {
		free(process->cmdline);
		process->cmdline = cmdline;
		process->cmdline_count = count;
	}
	if (cgroup) {
		free(process->cgroup);
		process->cgroup = cgroup;
	}
}

/* cmdline is one block: the pointers, then their strings one behind the other. */
static char **copy_cmdline(char *const *cmdline, uint32_t count)
{
	size_t length, pointers = count * sizeof(*cmdline);
	char **copy;

	if (!count)
		return NULL;
	length = (size_t)(cmdline[count - 1] - cmdline[0]) + strlen(cmdline[count - 1]) + 1;
	copy = malloc(pointers + length);
	if (!copy)
		return NULL;
	memcpy((char *)copy + pointers, cmdline[0], length);
	for (uint32_t i = 0; i < count; i++)
		copy[i] = (char *)copy + pointers + (cmdline[i] - cmdline[0]);
	return copy;
}

int process_copy_description(struct process *child, const struct process *parent)
{
	process_set_name(child, parent->name);
	child->ranks = parent->ranks;
	child->cmdline = copy_cmdline(parent->cmdline, parent->cmdline_count);
	child->cmdline_count = child->cmdline ? parent->cmdline_count : 0;
	child->cgroup = parent->cgroup ? strdup(parent->cgroup) : NULL;
	return (parent->cmdline_count && !child->cmdline) || (parent->cgroup && !child->cgroup)
		       ? -ENOMEM
		       : 0;
}

/* True while this process can still open the file through its mapping. */
static bool still_holds(const struct address_spaces *spaces, const struct mapped_file *file)
{
	const struct tracked_process *holder = tracked_find(spaces, file->pid);
	const struct mapping *mapping;

	if (!holder || holder->process.exited)
		return false;
	mapping = process_find_mapping(&holder->process, file->start);
	return mapping && mapping->file == file->index && mapping->start == file->start &&
	       mapping->end == file->end;
}

/* Finds the file and tells the listener of a new one. */
int spaces_resolve_file(struct address_spaces *spaces, const struct file_sighting *sighting,
	struct mapping *mapping)
{
	int added = file_table_resolve(&spaces->files, sighting, &mapping->file);
	struct mapped_file *file;

	if (added < 0)
		return added;
	file = spaces->files.files.items[mapping->file];
	mapping->kind = file->kind;
	if (!added && !still_holds(spaces, file)) {
		file->pid = sighting->pid;
		file->start = sighting->start;
		file->end = sighting->end;
	}
	if (added && spaces->listener.file_added)
		spaces->listener.file_added(spaces->listener.context, file);
	return 0;
}

/* Turns spaces->maps into spaces->mappings. */
static int resolve_maps(struct address_spaces *spaces, uint32_t pid)
{
	array_clear(&spaces->mappings);
	array_foreach (&spaces->maps.mappings, found) {
		struct mapping mapping = {.start = found->start,
			.end = found->end,
			.file_offset = found->file_offset};
		struct file_sighting sighting = {
			.name = proc_mapping_name(&spaces->maps, found),
			.device = found->device,
			.inode = found->inode,
			.build_id = &found->build_id,
			.pid = pid,
			.start = found->start,
			.end = found->end,
		};

		if (spaces_resolve_file(spaces, &sighting, &mapping) < 0 ||
			array_append(&spaces->mappings, mapping) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Reads spaces->maps and the status; a zombie counts as gone. */
static int read_process(struct address_spaces *spaces, uint32_t pid, struct proc_status *ret_status)
{
	int error = proc_read_status(pid, ret_status);
	uint32_t tid;

	if (error < 0)
		return error;
	tid = proc_living_thread(pid);
	return tid ? proc_maps_read(&spaces->maps, tid) : -ESRCH;
}

int spaces_add_or_refresh(struct address_spaces *spaces, uint32_t pid)
{
	uint64_t now_ns = monotonic_now_ns(); /* before reading: see known_at_ns */
	struct tracked_process *tracked;
	struct proc_status status;
	int error = read_process(spaces, pid, &status);

	if (error < 0)
		return error;
	tracked = tracked_find(spaces, pid);
	if (tracked && tracked->process.exited) {
		tracked_forget(spaces, tracked);
		tracked = NULL;
	}
	if (!tracked)
		tracked = tracked_add(spaces, pid, status.parent_pid, now_ns);
	if (!tracked)
		return -ENOMEM;
	tracked->known_at_ns = now_ns;
	tracked->may_have_threads = true;
	process_set_name(&tracked->process, status.name);
	process_read_description(&tracked->process, false);
	if (resolve_maps(spaces, pid) < 0)
		return -ENOMEM;
	return mapping_list_replace(&tracked->process, spaces->mappings.items,
		spaces->mappings.count, &spaces->listener);
}

int address_spaces_add_process(struct address_spaces *spaces, uint32_t pid, struct errmsg *err)
{
	int error = spaces_add_or_refresh(spaces, pid);

	if (error == -ESRCH)
		return errmsg_set(err, error,
			"cannot read process %u: it has ended; give the pid of a running one", pid);
	if (error == -EACCES || error == -EPERM)
		return errmsg_set(err, error,
			"cannot read the mappings of process %u: %s; run as its user or as root",
			pid, strerror(-error));
	if (error < 0)
		return errmsg_set(err, error, "cannot read the mappings of process %u: %s", pid,
			strerror(-error));
	return 0;
}

/* A program may have started us to record it: we are its child, and no part of it. */
static void remove_ourselves(struct pid_list *list, size_t from)
{
	for (size_t i = from; i < list->pids.count; i++) {
		if (list->pids.items[i] == (uint32_t)getpid())
			list->pids.items[i] = list->pids.items[--list->pids.count];
	}
}

/*
 * Adds the descendants of the listed processes, breadth first. Known children are gone into but not
 * read again. Returns how many were added.
 */
int spaces_add_descendants(struct address_spaces *spaces, struct pid_list *queue)
{
	int added = 0;

	for (size_t i = 0; i < queue->pids.count; i++) {
		size_t first_child = queue->pids.count;

		if (proc_list_children(queue->pids.items[i], queue) == -ENOMEM)
			return -ENOMEM;
		remove_ourselves(queue, first_child);
		for (size_t child = first_child; child < queue->pids.count; child++) {
			const struct tracked_process *known =
				tracked_find(spaces, queue->pids.items[child]);
			int error = 0;

			if (!known || known->process.exited) {
				error = spaces_add_or_refresh(spaces, queue->pids.items[child]);
				added += error == 0;
			}
			if (error == -ENOMEM)
				return error;
		}
	}
	return added;
}

int address_spaces_add_tree(struct address_spaces *spaces, uint32_t pid, struct errmsg *err)
{
	struct pid_list queue = {0};
	int added, error = address_spaces_add_process(spaces, pid, err);

	if (error < 0)
		return error;
	added = array_append(&queue.pids, pid);
	if (added == 0)
		added = spaces_add_descendants(spaces, &queue);
	array_done(&queue.pids);
	if (added < 0)
		return errmsg_set(
			err, added, "cannot list the children of process %u: out of memory", pid);
	return 0;
}

int address_spaces_add_all(struct address_spaces *spaces)
{
	struct pid_list all = {0};
	int added = 0, error = proc_list_all(&all);

	for (size_t i = 0; error == 0 && i < all.pids.count; i++) {
		int result = spaces_add_or_refresh(spaces, all.pids.items[i]);

		added += result == 0;
		if (result == -ENOMEM)
			error = result;
	}
	array_done(&all.pids);
	return error < 0 ? error : added;
}

struct process *address_spaces_find(struct address_spaces *spaces, uint32_t pid)
{
	struct tracked_process *tracked = tracked_find(spaces, pid);

	return tracked ? &tracked->process : NULL;
}

struct process *address_spaces_next(const struct address_spaces *spaces, size_t *position)
{
	uint64_t pid, value;

	if (!map_u64_next(&spaces->processes, position, &pid, &value))
		return NULL;
	return &((struct tracked_process *)(uintptr_t)value)->process;
}

void address_spaces_forget_exited(struct address_spaces *spaces, uint64_t before_ns)
{
	size_t kept;

	for (; spaces->first_exited < spaces->exited.count; spaces->first_exited++) {
		const struct exited_process *exited = &spaces->exited.items[spaces->first_exited];
		struct tracked_process *tracked = tracked_find(spaces, exited->pid);

		if (exited->exited_ns >= before_ns)
			break;
		/* The pid may be another process's by now, or the process have been revived. */
		if (tracked && tracked->process.exited &&
			tracked->process.exited_ns == exited->exited_ns)
			tracked_forget(spaces, tracked);
	}
	kept = spaces->exited.count - spaces->first_exited;
	if (spaces->first_exited < kept)
		return;
	if (kept)
		memmove(spaces->exited.items, spaces->exited.items + spaces->first_exited,
			kept * sizeof(*spaces->exited.items));
	spaces->exited.count = kept;
	spaces->first_exited = 0;
}

const struct mapped_file *address_spaces_file(const struct address_spaces *spaces, uint32_t index)
{
	return index < spaces->files.files.count ? spaces->files.files.items[index] : NULL;
}

int address_spaces_new(
	struct address_spaces **ret_spaces, const struct address_space_listener *listener)
{
	struct address_spaces *spaces = calloc(1, sizeof(*spaces));

	if (!spaces)
		return -ENOMEM;
	if (listener)
		spaces->listener = *listener;
	*ret_spaces = spaces;
	return 0;
}

struct address_spaces *address_spaces_free(struct address_spaces *spaces)
{
	size_t position = 0;
	uint64_t pid, value;

	if (!spaces)
		return NULL;
	while (map_u64_next(&spaces->processes, &position, &pid, &value))
		free_tracked((struct tracked_process *)(uintptr_t)value);
	map_u64_done(&spaces->processes);
	file_table_done(&spaces->files);
	proc_maps_done(&spaces->maps);
	array_done(&spaces->mappings);
	array_done(&spaces->exited);
	free(spaces);
	return NULL;
}
