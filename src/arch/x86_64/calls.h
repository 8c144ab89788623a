/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* System calls of x86-64 by what a thread in them waits for; see arch/arch.h
 * (arch/x86/entry/syscalls/syscall_64.tbl). */
#pragma once

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

/*
 * Calls that fail with EINTR when their thread is stopped for a moment, and not only when a signal
 * is handled: epoll_wait, epoll_pwait, epoll_pwait2, semop, semtimedop, msgsnd, msgrcv,
 * rt_sigtimedwait, io_getevents, io_pgetevents, io_uring_enter
 */
#define ARCH_CASES_NOT_RESTARTED                                                                   \
	case 232:                                                                                  \
	case 281:                                                                                  \
	case 441:                                                                                  \
	case 65:                                                                                   \
	case 220:                                                                                  \
	case 69:                                                                                   \
	case 70:                                                                                   \
	case 128:                                                                                  \
	case 208:                                                                                  \
	case 333:                                                                                  \
	case 426

/* clone, vfork, clone3 */
static inline __attribute__((always_inline)) int arch_makes_child(__u64 number)
{
	return number == 56 || number == 58 || number == 435;
}

/* read, write and their kin, whose first argument is a descriptor. */
static inline __attribute__((always_inline)) int arch_reads_or_writes(__u64 number)
{
	return number <= 1 || (number >= 17 && number <= 20) || number == 40 || number == 275 ||
	       number == 295 || number == 296 || number == 327 || number == 328;
}

/* What the kernel puts in place of a call with a timeout that it restarts after a stop. */
#define ARCH_CALL_RESTART 219

/* By the code in front of where the call returns to: mov $number, %eax; syscall. -1: it is other.
 */
#define ARCH_CALL_CODE_BYTES 7
static inline __attribute__((always_inline)) __s64 arch_call_in_code(const __u8 *code)
{
	if (code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05)
		return -1;
	return code[1] | code[2] << 8 | code[3] << 16 | (__s64)code[4] << 24;
}
