/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* System calls of arm64 by what a thread in them waits for; see arch/arch.h
 * (include/uapi/asm-generic/unistd.h). */
#pragma once

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

/*
 * Calls that fail with EINTR when their thread is stopped for a moment, and not only when a signal
 * is handled: epoll_pwait, epoll_pwait2, semop, semtimedop, msgsnd, msgrcv,
 * rt_sigtimedwait, io_getevents, io_pgetevents, io_uring_enter
 */
#define ARCH_CASES_NOT_RESTARTED                                                                   \
	case 22:                                                                                   \
	case 441:                                                                                  \
	case 193:                                                                                  \
	case 192:                                                                                  \
	case 189:                                                                                  \
	case 188:                                                                                  \
	case 137:                                                                                  \
	case 4:                                                                                    \
	case 292:                                                                                  \
	case 426

/* clone, clone3 */
static inline __attribute__((always_inline)) int arch_makes_child(__u64 number)
{
	return number == 220 || number == 435;
}

/* read, write and their kin, sendfile, splice, preadv2, pwritev2. */
static inline __attribute__((always_inline)) int arch_reads_or_writes(__u64 number)
{
	return (number >= 63 && number <= 71) || number == 76 || number == 286 || number == 287;
}

/* What the kernel puts in place of a call with a timeout that it restarts after a stop. */
#define ARCH_CALL_RESTART 128

/* By the code in front of where the call returns to: mov x8, #number; svc #0. -1: it is other. */
#define ARCH_CALL_CODE_BYTES 8
static inline __attribute__((always_inline)) __s64 arch_call_in_code(const __u8 *code)
{
	__u32 move = code[0] | code[1] << 8 | code[2] << 16 | (__u32)code[3] << 24;

	if ((move & 0xffe0001f) != 0xd2800008 || code[4] != 0x01 || code[5] || code[6] ||
		code[7] != 0xd4)
		return -1;
	return move >> 5 & 0xffff;
}
