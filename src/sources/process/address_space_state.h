/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of address spaces share: address_space.c has the processes and what /proc says of
 * them, address_space_events.c what side-band events change. Nothing else includes this.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "sources/process/address_space.h"
#include "sources/process/file_table.h"
#include "sources/process/mapping_list.h"
#include "sources/process/proc_info.h"
#include "sources/process/proc_maps.h"

struct tracked_process {
	struct process process;
	/* What we know holds at this time: events from before it, which may be applied later, are
	 * in it already. */
	uint64_t known_at_ns;
	bool leader_ended;
	bool may_have_threads;
};

struct exited_process {
	uint32_t pid;
	uint64_t exited_ns;
};

struct address_spaces {
	struct address_space_listener listener;
	struct map_u64 processes; /* pid → struct tracked_process * */
	struct file_table files;
	struct proc_maps maps; /* of the process that is being read */
	ARRAY_OF(struct mapping) mappings;
	ARRAY_OF(struct exited_process) exited; /* in the order of exiting */
	size_t first_exited;
	uint64_t refreshed_ns; /* when all of /proc was last read because records were lost */
};

struct tracked_process *tracked_find(const struct address_spaces *spaces, uint32_t pid);
struct tracked_process *tracked_add(
	struct address_spaces *spaces, uint32_t pid, uint32_t parent_pid, uint64_t now_ns);
void tracked_forget(struct address_spaces *spaces, struct tracked_process *tracked);
int tracked_mark_exited(
	struct address_spaces *spaces, struct tracked_process *tracked, uint64_t now_ns);
void process_revive(struct process *process);
void process_set_name(struct process *process, const char *name);
void process_read_description(struct process *process, bool is_new_program);
int process_copy_description(struct process *child, const struct process *parent);
int spaces_resolve_file(struct address_spaces *spaces, const struct file_sighting *sighting,
	struct mapping *mapping);
int spaces_add_or_refresh(struct address_spaces *spaces, uint32_t pid);
int spaces_add_descendants(struct address_spaces *spaces, struct pid_list *queue);
