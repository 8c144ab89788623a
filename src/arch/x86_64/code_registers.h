/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of x86-64's general registers as machine code has them; see arch/code.h. */
#pragma once

#include <stdint.h>

enum x86_register {
	X86_RAX,
	X86_RCX,
	X86_RDX,
	X86_RBX,
	X86_RSP,
	X86_RBP,
	X86_RSI,
	X86_RDI,
	X86_R8,
	X86_R11 = 11,
	X86_REGISTERS = 16,
};

enum {
	ARCH_SP = X86_RSP,
	ARCH_FP = X86_RBP,
	ARCH_SECOND = X86_RBX,
	ARCH_MACHINE_REGISTERS = X86_REGISTERS,
	ARCH_LONGEST_INSTRUCTION = 15,
};

/* What a called function may change (psABI figure 3.4): rax rcx rdx rsi rdi r8 to r11. */
#define ARCH_CALLER_SAVED 0x0fc7U

static inline uint8_t arch_dwarf_register(unsigned reg)
{
	static const uint8_t numbers[X86_REGISTERS] = {
		0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

	return numbers[reg];
}
