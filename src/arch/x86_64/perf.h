/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64 registers as perf events give them (arch/x86/include/uapi/asm/perf_regs.h). */
#pragma once

#include "arch/arch.h"

/* sample_regs_user, and how many come, in the order of their bits: ax bx cx dx si di bp sp ip r8 …
 * r15 */
#define ARCH_PERF_MASK  0xff01ffULL
#define ARCH_PERF_COUNT 17
/* Positions among those. */
#define ARCH_PERF_PC     8
#define ARCH_PERF_SP     7
#define ARCH_PERF_FP     6
#define ARCH_PERF_SECOND 1
/* By DWARF number. */
#define ARCH_PERF_POSITIONS                                                                        \
	{                                                                                          \
		0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16                              \
	}
