/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of aarch64's general registers, which are DWARF's; see arch/code.h. */
#pragma once

#include <stdint.h>

enum {
	ARCH_FP = 29,
	ARCH_SECOND = 30, /* the link register */
	ARCH_SP = 31,     /* where an instruction does not mean the zero register by it */
	ARCH_MACHINE_REGISTERS = 32,
	ARCH_LONGEST_INSTRUCTION = 4,
};

/*
 * What a called function may change (AAPCS64, section 6.1.1): x0 … x18. The call itself changes
 * x30, but what counts is whether the function saved it before.
 */
#define ARCH_CALLER_SAVED 0x0007ffffU

static inline uint8_t arch_dwarf_register(unsigned reg)
{
	return (uint8_t)reg;
}
