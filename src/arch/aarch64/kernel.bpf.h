/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the BPF programs read of an arm64 kernel; see arch/arch.h. Part of bpf/kernel.bpf.h. */
#pragma once

/* pt_regs, a fixed layout; programs on perf events are given what stands up to pstate. */
struct registers {
	__u64 x[31], sp, pc, pstate;
	__u64 orig_x0;
	__s32 system_call;
	__u32 unused;
};

#define PSTATE_MODE_MASK   0x0f
#define PSTATE_MODE_32_BIT 0x10

struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
} __attribute__((preserve_access_index));

/* Kept when the thread is switched out: up to its first switch the one before. */
#define arch_thread_pointer(task) BPF_CORE_READ(task, thread.uw.tp_value)

static __always_inline int arch_is_kernel(const struct registers *registers)
{
	return (registers->pstate & PSTATE_MODE_MASK) != 0;
}

static __always_inline int arch_is_compat(const struct registers *registers)
{
	return !arch_is_kernel(registers) && registers->pstate & PSTATE_MODE_32_BIT;
}

static __always_inline int arch_is_user(const struct registers *registers)
{
	return !arch_is_kernel(registers);
}

/* -1 outside of a system call. */
static __always_inline __u64 arch_system_call(const struct registers *registers)
{
	return (__s64)registers->system_call;
}

static __always_inline __u64 arch_first_argument(const struct registers *registers)
{
	return registers->x[0];
}

static __always_inline void arch_copy_registers(
	const struct registers *from, struct wire_stack_copy *to)
{
	to->pc = from->pc;
	to->sp = from->sp;
	to->fp = from->x[29];
	to->second = from->x[30];
	__builtin_memcpy(to->leaf, from->x, sizeof(from->x));
	to->leaf[31] = from->sp;
}

/* System calls (include/uapi/asm-generic/unistd.h). */
#define ARCH_CALL_FUTEX 98

/* futex, futex_waitv, futex_wait */
#define ARCH_CASES_LOCK                                                                            \
	case ARCH_CALL_FUTEX:                                                                      \
	case 449:                                                                                  \
	case 455
/* pselect6, ppoll, epoll_pwait, epoll_pwait2 */
#define ARCH_CASES_POLL                                                                            \
	case 72:                                                                                   \
	case 73:                                                                                   \
	case 22:                                                                                   \
	case 441
/* nanosleep, clock_nanosleep */
#define ARCH_CASES_SLEEP                                                                           \
	case 101:                                                                                  \
	case 115
/* wait4, waitid */
#define ARCH_CASES_CHILD                                                                           \
	case 260:                                                                                  \
	case 95
/* connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg */
#define ARCH_CASES_SOCKET                                                                          \
	case 203:                                                                                  \
	case 202:                                                                                  \
	case 206:                                                                                  \
	case 207:                                                                                  \
	case 211:                                                                                  \
	case 212:                                                                                  \
	case 242:                                                                                  \
	case 243:                                                                                  \
	case 269
/* fsync, fdatasync, msync, sync, syncfs */
#define ARCH_CASES_DISK                                                                            \
	case 82:                                                                                   \
	case 83:                                                                                   \
	case 227:                                                                                  \
	case 81:                                                                                   \
	case 267
/* flock; fcntl, which waits for nothing else */
#define ARCH_CASES_FILE_LOCK                                                                       \
	case 32:                                                                                   \
	case 25
/*
 * Calls in which an uninterruptible sleep is for a file or its folder: mknodat … renameat,
 * truncate, ftruncate, fallocate, faccessat, openat, close, getdents64, readlinkat, newfstatat,
 * fstat, sync_file_range, execve, renameat2, execveat, copy_file_range, statx, openat2, faccessat2
 */
#define ARCH_CASES_FILES                                                                           \
	case 33 ... 38:                                                                            \
	case 45 ... 48:                                                                            \
	case 56:                                                                                   \
	case 57:                                                                                   \
	case 61:                                                                                   \
	case 78 ... 80:                                                                            \
	case 84:                                                                                   \
	case 221:                                                                                  \
	case 276:                                                                                  \
	case 281:                                                                                  \
	case 285:                                                                                  \
	case 291:                                                                                  \
	case 437:                                                                                  \
	case 439

/* clone, clone3 */
static __always_inline int arch_makes_child(__u64 number)
{
	return number == 220 || number == 435;
}

/* read, write and their kin, sendfile, splice, preadv2, pwritev2. */
static __always_inline int arch_reads_or_writes(__u64 number)
{
	return (number >= 63 && number <= 71) || number == 76 || number == 286 || number == 287;
}
