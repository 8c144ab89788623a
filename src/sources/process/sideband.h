/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to processes, as it happens: one PERF_COUNT_SW_DUMMY event per CPU with mmap2 +
 * build-id, comm, comm_exec, task, ksymbol on CLOCK_MONOTONIC. No kprobes, no tracepoints.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "elf/elf_file.h"

enum sideband_type {
	SIDEBAND_MMAP,    /* executable mappings only */
	SIDEBAND_COMM,    /* new thread name; is_exec: the process runs another program now */
	SIDEBAND_FORK,    /* a new process or thread (pid == parent_pid: a thread) */
	SIDEBAND_EXIT,    /* a thread ended; tid == pid: the leader */
	SIDEBAND_KSYMBOL, /* kernel text came (BPF program, module, trampoline) or went */
	SIDEBAND_LOST,    /* records were lost on `cpu` */
};

struct sideband_event {
	enum sideband_type type;
	uint64_t time_ns;
	uint32_t pid, tid, parent_pid, cpu;
	uint64_t address, length, file_offset; /* MMAP, KSYMBOL */
	uint64_t device, inode,
		inode_generation; /* MMAP; 0 when the kernel gave the build-id instead */
	struct build_id build_id; /* MMAP; length 0: not given */
	const char *name; /* MMAP: path; COMM: name; KSYMBOL: symbol. Valid during the call */
	bool is_exec;     /* COMM */
	bool removed;     /* KSYMBOL */
	uint64_t lost;    /* LOST: how many */
};

struct sideband;

/*
 * `pid` 0: the whole machine (needs CAP_PERFMON); else that process with the threads it has and the
 * children that it makes from now on, by inheritance: the mode without privileges. Events flow at
 * once.
 */
int sideband_open(struct sideband **ret_sideband, uint32_t pid, struct errmsg *err);
/* One more process like that, each at most once; nothing to do when the whole machine is watched.
 */
int sideband_follow(struct sideband *sideband, uint32_t pid, struct errmsg *err);
size_t sideband_descriptors(struct sideband *sideband, int *ret_fds, size_t capacity);
/*
 * Hands over every event recorded so far, sorted by time over all CPUs. Returns 0 or a negative
 * errno.
 */
int sideband_drain(struct sideband *sideband,
	void (*on_event)(void *context, const struct sideband_event *event), void *context);
struct sideband *sideband_free(struct sideband *sideband);
