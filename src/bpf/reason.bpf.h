/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a thread waits for: by its state, its system call and the file that it names. */
#pragma once

#include "bpf/kernel.bpf.h"
#include "bpf/reason_shared.h"

/* include/linux/sched.h */
#define STATE_UNINTERRUPTIBLE 0x0002
#define STATE_STOPPED         0x0004
#define STATE_TRACED          0x0008
#define STATE_MASK            0x000f
#define STATE_KILLABLE        0x0100

#define INODE_TYPE   0170000
#define INODE_FIFO   0010000
#define INODE_SOCKET 0140000

/* vfork, and clone and clone3 as posix_spawn() calls them: until the child runs its program. */
static __always_inline bool waits_for_child(__u64 number, __u32 state)
{
	return state & STATE_KILLABLE && arch_makes_child(number);
}

static __noinline int reason_of_file(struct task_struct *task, __u64 descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = 0;
	unsigned short mode;

	if (!table || descriptor >= BPF_CORE_READ(table, max_fds))
		return WIRE_WAIT_OTHER;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), &files[descriptor]);
	if (!file)
		return WIRE_WAIT_OTHER;
	mode = BPF_CORE_READ(file, f_inode, i_mode);
	switch (mode & INODE_TYPE) {
	case INODE_FIFO:
		return WIRE_WAIT_PIPE;
	case INODE_SOCKET:
		return WIRE_WAIT_SOCKET;
	default:
		return WIRE_WAIT_DISK;
	}
}

/* `first_argument`: of the system call. `state`: task_struct's. */
static __always_inline int wait_reason(
	struct task_struct *task, __u64 system_call, __u64 first_argument, __u32 state)
{
	int reason;

	if (state & (STATE_STOPPED | STATE_TRACED))
		return WIRE_WAIT_STOPPED;
	if (!(state & STATE_MASK))
		return WIRE_WAIT_CPU;
	if ((__s64)system_call < 0)
		return WIRE_WAIT_FAULT;
	if (arch_reads_or_writes(system_call))
		return reason_of_file(task, first_argument);
	reason = reason_of_system_call(system_call);
	if (reason != WIRE_WAIT_OTHER || !(state & STATE_UNINTERRUPTIBLE))
		return reason;
	if (waits_for_child(system_call, state))
		return WIRE_WAIT_CHILD;
	return looks_for_files(system_call) ? WIRE_WAIT_DISK : WIRE_WAIT_UNKNOWN;
}
