/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64 registers of a thread that ptrace has stopped: words of struct user_regs_struct. */
#pragma once

#include "arch/arch.h"

#define ARCH_TRACEE_WORDS  27
#define ARCH_TRACEE_PC     16
#define ARCH_TRACEE_SP     19
#define ARCH_TRACEE_FP     4
#define ARCH_TRACEE_SECOND 5
/* By DWARF number. */
#define ARCH_TRACEE_POSITIONS                                                                      \
	{                                                                                          \
		10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0                               \
	}
/* The register set that thread-local storage is found by, its words, and which it is: fs_base. */
#define ARCH_TRACEE_TLS_SET   1 /* NT_PRSTATUS */
#define ARCH_TRACEE_TLS_WORDS ARCH_TRACEE_WORDS
#define ARCH_TRACEE_TLS       21
