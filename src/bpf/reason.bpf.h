/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a thread waits for: by its state, its system call and the file that it names. */
#pragma once

#include "bpf/kernel.bpf.h"
#include "wire/wait.h"

/* include/linux/sched.h */
#define STATE_UNINTERRUPTIBLE 0x0002
#define STATE_STOPPED         0x0004
#define STATE_TRACED          0x0008
#define STATE_MASK            0x000f
#define STATE_KILLABLE        0x0100

#define INODE_TYPE   0170000
#define INODE_FIFO   0010000
#define INODE_SOCKET 0140000

/* System calls of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl). */
static __always_inline int reason_of_system_call(__u64 number)
{
	switch (number) {
	case 202: /* futex */
	case 449: /* futex_waitv */
	case 455: /* futex_wait */
		return WIRE_WAIT_LOCK;
	case 7:   /* poll */
	case 23:  /* select */
	case 232: /* epoll_wait */
	case 270: /* pselect6 */
	case 271: /* ppoll */
	case 281: /* epoll_pwait */
	case 441: /* epoll_pwait2 */
		return WIRE_WAIT_POLL;
	case 35:  /* nanosleep */
	case 230: /* clock_nanosleep */
	case 34:  /* pause */
		return WIRE_WAIT_SLEEP;
	case 61:  /* wait4 */
	case 247: /* waitid */
		return WIRE_WAIT_CHILD;
	case 42:  /* connect */
	case 43:  /* accept */
	case 44:  /* sendto */
	case 45:  /* recvfrom */
	case 46:  /* sendmsg */
	case 47:  /* recvmsg */
	case 288: /* accept4 */
	case 299: /* recvmmsg */
	case 307: /* sendmmsg */
		return WIRE_WAIT_SOCKET;
	case 74:  /* fsync */
	case 75:  /* fdatasync */
	case 26:  /* msync */
	case 162: /* sync */
	case 306: /* syncfs */
		return WIRE_WAIT_DISK;
	case 73: /* flock */
	case 72: /* fcntl, which waits for nothing else */
		return WIRE_WAIT_FILE_LOCK;
	default:
		return WIRE_WAIT_OTHER;
	}
}

/* Does an uninterruptible sleep in this call wait for a file or its folder? */
static __always_inline bool looks_for_files(__u64 number)
{
	switch (number) {
	case 2: /* open */
	case 3: /* close */
	case 4: /* stat, fstat, lstat */
	case 5:
	case 6:
	case 21: /* access */
	case 59: /* execve */
	case 76: /* truncate, ftruncate */
	case 77:
	case 78: /* getdents */
	case 82: /* rename … unlink, symlink, readlink */
	case 83:
	case 84:
	case 85:
	case 86:
	case 87:
	case 88:
	case 89:
	case 217: /* getdents64 */
	case 257: /* openat … faccessat */
	case 258:
	case 262:
	case 263:
	case 264:
	case 265:
	case 266:
	case 267:
	case 269:
	case 277: /* sync_file_range */
	case 285: /* fallocate */
	case 316: /* renameat2 */
	case 322: /* execveat */
	case 326: /* copy_file_range */
	case 332: /* statx */
	case 437: /* openat2 */
	case 439: /* faccessat2 */
		return true;
	default:
		return false;
	}
}

/* vfork, and clone and clone3 as posix_spawn() calls them: until the child runs its program. */
static __always_inline bool waits_for_child(__u64 number, __u32 state)
{
	return state & STATE_KILLABLE && (number == 56 || number == 58 || number == 435);
}

/* read, write and their kin, whose first argument is a descriptor. */
static __always_inline bool reads_or_writes(__u64 number)
{
	return number <= 1 || (number >= 17 && number <= 20) || number == 40 || number == 275 ||
	       number == 295 || number == 296 || number == 327 || number == 328;
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

/* `first_argument`: of the system call, rdi. `in_kernel`: its stack has kernel frames. */
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
	if (reads_or_writes(system_call))
		return reason_of_file(task, first_argument);
	reason = reason_of_system_call(system_call);
	if (reason != WIRE_WAIT_OTHER || !(state & STATE_UNINTERRUPTIBLE))
		return reason;
	if (waits_for_child(system_call, state))
		return WIRE_WAIT_CHILD;
	return looks_for_files(system_call) ? WIRE_WAIT_DISK : WIRE_WAIT_UNKNOWN;
}
