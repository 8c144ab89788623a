/* SPDX-License-Identifier: Apache-2.0 */
/* aarch64 registers of a thread that ptrace has stopped: words of struct user_pt_regs. */
#pragma once

#include "arch/arch.h"

/* x0 … x30, sp, pc, pstate */
#define ARCH_TRACEE_WORDS  34
#define ARCH_TRACEE_PC     32
#define ARCH_TRACEE_SP     31
#define ARCH_TRACEE_FP     29
#define ARCH_TRACEE_SECOND 30
/* By DWARF number. */
#define ARCH_TRACEE_POSITIONS                                                                      \
	{                                                                                          \
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,  \
			23, 24, 25, 26, 27, 28, 29, 30, 31                                         \
	}
/* The register set that thread-local storage is found by, its words, and which it is. */
#define ARCH_TRACEE_TLS_SET   0x401 /* NT_ARM_TLS */
#define ARCH_TRACEE_TLS_WORDS 1
#define ARCH_TRACEE_TLS       0
