/* SPDX-License-Identifier: Apache-2.0 */
/* aarch64 registers as perf events give them (arch/arm64/include/uapi/asm/perf_regs.h). */
#pragma once

#include "arch/arch.h"

/* x0 … x30, sp, pc */
#define ARCH_PERF_MASK   0x1ffffffffULL
#define ARCH_PERF_COUNT  33
#define ARCH_PERF_PC     32
#define ARCH_PERF_SP     31
#define ARCH_PERF_FP     29
#define ARCH_PERF_SECOND 30
/* By DWARF number. */
#define ARCH_PERF_POSITIONS                                                                        \
	{                                                                                          \
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,  \
			23, 24, 25, 26, 27, 28, 29, 30, 31                                         \
	}
