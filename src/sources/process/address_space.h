/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every process that matters and its executable mappings at this moment: filled from /proc at the
 * start, then kept current by side-band events. Addresses of samples are resolved here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "sources/process/proc_ranks.h"
#include "sources/process/sideband.h"

enum mapping_kind {
	MAPPING_FILE, /* an ELF file */
	MAPPING_VDSO,
	MAPPING_ANONYMOUS, /* JIT code: anonymous, [heap], //anon, memfd without ELF, /dev/zero … */
	MAPPING_UPROBES,   /* the [uprobes] page: return trampolines */
	MAPPING_VSYSCALL,
};

/* A file that was mapped somewhere, once per identity (device, inode, generation, or build-id +
 * path). Never freed. */
struct mapped_file {
	uint32_t index; /* dense, from 0 */
	char *path;     /* as the process sees it */
	enum mapping_kind kind;
	uint64_t device, inode, inode_generation; /* 0: not known */
	struct build_id build_id;                 /* as the kernel says; length 0: unknown */
	/* A process and address range through which /proc/PID/map_files can open it. */
	uint32_t pid;
	uint64_t start, end;
};

struct mapping {
	uint64_t start, end, file_offset;
	uint32_t file; /* mapped_file.index */
	enum mapping_kind kind;
};

struct process {
	uint32_t pid, parent_pid;
	uint32_t exec_count; /* how often it ran another program while we watched */
	uint64_t first_seen_ns;
	bool exited;
	uint64_t exited_ns;
	char name[64];  /* comm of the leader */
	char **cmdline; /* argv; NULL when it could not be read */
	uint32_t cmdline_count;
	char *cgroup;             /* path, NULL when unknown */
	struct proc_ranks ranks;  /* of the job that it is part of */
	struct mapping *mappings; /* sorted by start, not overlapping */
	size_t mapping_count, mapping_capacity;
	uint64_t generation; /* counts changes of the mappings */
};

/* Reported about every change after it happened, so that the BPF maps can follow. Any may be NULL.
 */
struct address_space_listener {
	void *context;
	void (*mapping_added)(
		void *context, const struct process *process, const struct mapping *mapping);
	void (*mapping_removed)(
		void *context, const struct process *process, const struct mapping *mapping);
	/* All mappings of the process went: exec, or an exited process is forgotten or its pid used
	 * again. */
	void (*process_cleared)(void *context, const struct process *process);
	/* The child has a copy of the parent's mappings (its own mapping_added follow for each). */
	void (*process_forked)(
		void *context, const struct process *parent, const struct process *child);
	/* First sight of a file: time to build its tables. */
	void (*file_added)(void *context, const struct mapped_file *file);
};

struct address_spaces;

int address_spaces_new(
	struct address_spaces **ret_spaces, const struct address_space_listener *listener);
struct address_spaces *address_spaces_free(struct address_spaces *spaces);

/*
 * Reads /proc/PID (maps by PROCMAP_QUERY ioctl where there is one, else by text). -ESRCH when the
 * process is gone. Known processes are refreshed: differences are applied and reported to the
 * listener.
 */
int address_spaces_add_process(struct address_spaces *spaces, uint32_t pid, struct errmsg *err);
/* The process and all its living descendants. Returns 0, or a negative errno when the process
 * itself cannot be read. */
int address_spaces_add_tree(struct address_spaces *spaces, uint32_t pid, struct errmsg *err);
/* Every process in /proc. Returns the number added or a negative errno. */
int address_spaces_add_all(struct address_spaces *spaces);
/*
 * Applies a side-band event. With `only_descendants` events of processes that are neither known nor
 * children of known ones are ignored. Events come in the order of time; those from before a process
 * was read from /proc may come after it, and change nothing. SIDEBAND_LOST makes all living
 * processes be read again. Returns 0 or -ENOMEM.
 */
int address_spaces_apply(
	struct address_spaces *spaces, const struct sideband_event *event, bool only_descendants);

/* Exited processes stay findable until address_spaces_forget_exited(before_ns). */
struct process *address_spaces_find(struct address_spaces *spaces, uint32_t pid);
void address_spaces_forget_exited(struct address_spaces *spaces, uint64_t before_ns);
/* Visits every known process, in no order: start with *position = 0; NULL at the end. Add none
 * meanwhile. */
struct process *address_spaces_next(const struct address_spaces *spaces, size_t *position);
/* The mapping that covers the address; NULL when none. */
const struct mapping *process_find_mapping(const struct process *process, uint64_t address);
const struct mapped_file *address_spaces_file(const struct address_spaces *spaces, uint32_t index);

/*
 * Opens the mapped file for reading: /proc/PID/map_files/START-END (right also for deleted,
 * replaced and container files), else /proc/PID/root + path checked by device and inode or
 * build-id. Returns a descriptor or a negative errno: -ESTALE when the file on disk is another one
 * now.
 */
int mapped_file_open(const struct mapped_file *file, struct errmsg *err);
/* Why it cannot be opened now, as mapped_file_open() says it. */
void mapped_file_explain(const struct mapped_file *file, struct errmsg *ret_reason);
