/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the BPF programs read of an x86-64 kernel; see arch/arch.h. Part of bpf/kernel.bpf.h. */
#pragma once

/* pt_regs, a fixed layout; on FRED kernels the bits above the 16 of cs mean something else. */
struct registers {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
		flags, sp, ss;
};

#define USER_CS   0x33
#define USER32_CS 0x23

struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

/* In a macro, because CO-RE follows the members from the task on. */
#define arch_thread_pointer(task) BPF_CORE_READ(task, thread.fsbase)

static __always_inline int arch_is_kernel(const struct registers *registers)
{
	return !(registers->cs & 3);
}

static __always_inline int arch_is_compat(const struct registers *registers)
{
	return (__u16)registers->cs == USER32_CS;
}

static __always_inline int arch_is_user(const struct registers *registers)
{
	return (__u16)registers->cs == USER_CS;
}

/* -1 outside of a system call. */
static __always_inline __u64 arch_system_call(const struct registers *registers)
{
	return registers->orig_ax;
}

static __always_inline __u64 arch_first_argument(const struct registers *registers)
{
	return registers->di;
}

static __always_inline void arch_copy_registers(
	const struct registers *from, struct wire_stack_copy *to)
{
	to->pc = from->ip;
	to->sp = from->sp;
	to->fp = from->bp;
	to->second = from->bx;
	to->leaf[0] = from->ax;
	to->leaf[1] = from->dx;
	to->leaf[2] = from->cx;
	to->leaf[3] = from->bx;
	to->leaf[4] = from->si;
	to->leaf[5] = from->di;
	to->leaf[6] = from->bp;
	to->leaf[7] = from->sp;
	to->leaf[8] = from->r8;
	to->leaf[9] = from->r9;
	to->leaf[10] = from->r10;
	to->leaf[11] = from->r11;
	to->leaf[12] = from->r12;
	to->leaf[13] = from->r13;
	to->leaf[14] = from->r14;
	to->leaf[15] = from->r15;
}

/* System calls (arch/x86/entry/syscalls/syscall_64.tbl). */
#define ARCH_CALL_FUTEX 202

/* futex, futex_waitv, futex_wait */
#define ARCH_CASES_LOCK                                                                            \
	case ARCH_CALL_FUTEX:                                                                      \
	case 449:                                                                                  \
	case 455
/* poll, select, epoll_wait, pselect6, ppoll, epoll_pwait, epoll_pwait2 */
#define ARCH_CASES_POLL                                                                            \
	case 7:                                                                                    \
	case 23:                                                                                   \
	case 232:                                                                                  \
	case 270:                                                                                  \
	case 271:                                                                                  \
	case 281:                                                                                  \
	case 441
/* nanosleep, clock_nanosleep, pause */
#define ARCH_CASES_SLEEP                                                                           \
	case 35:                                                                                   \
	case 230:                                                                                  \
	case 34
/* wait4, waitid */
#define ARCH_CASES_CHILD                                                                           \
	case 61:                                                                                   \
	case 247
/* connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg */
#define ARCH_CASES_SOCKET                                                                          \
	case 42:                                                                                   \
	case 43:                                                                                   \
	case 44:                                                                                   \
	case 45:                                                                                   \
	case 46:                                                                                   \
	case 47:                                                                                   \
	case 288:                                                                                  \
	case 299:                                                                                  \
	case 307
/* fsync, fdatasync, msync, sync, syncfs */
#define ARCH_CASES_DISK                                                                            \
	case 74:                                                                                   \
	case 75:                                                                                   \
	case 26:                                                                                   \
	case 162:                                                                                  \
	case 306
/* flock; fcntl, which waits for nothing else */
#define ARCH_CASES_FILE_LOCK                                                                       \
	case 73:                                                                                   \
	case 72
/*
 * Calls in which an uninterruptible sleep is for a file or its folder: open, close, stat, fstat,
 * lstat, access, execve, truncate, ftruncate, getdents, rename … unlink, symlink, readlink,
 * getdents64, openat … faccessat, sync_file_range, fallocate, renameat2, execveat, copy_file_range,
 * statx, openat2, faccessat2
 */
#define ARCH_CASES_FILES                                                                           \
	case 2 ... 6:                                                                              \
	case 21:                                                                                   \
	case 59:                                                                                   \
	case 76 ... 78:                                                                            \
	case 82 ... 89:                                                                            \
	case 217:                                                                                  \
	case 257:                                                                                  \
	case 258:                                                                                  \
	case 262 ... 267:                                                                          \
	case 269:                                                                                  \
	case 277:                                                                                  \
	case 285:                                                                                  \
	case 316:                                                                                  \
	case 322:                                                                                  \
	case 326:                                                                                  \
	case 332:                                                                                  \
	case 437:                                                                                  \
	case 439

/* clone, vfork, clone3 */
static __always_inline int arch_makes_child(__u64 number)
{
	return number == 56 || number == 58 || number == 435;
}

/* read, write and their kin, whose first argument is a descriptor. */
static __always_inline int arch_reads_or_writes(__u64 number)
{
	return number <= 1 || (number >= 17 && number <= 20) || number == 40 || number == 275 ||
	       number == 295 || number == 296 || number == 327 || number == 328;
}
