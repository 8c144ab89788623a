/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading x86-64 machine code as far as unwinding needs it: where each instruction ends, what it
 * does to the stack pointer and to saved registers, and where it goes on. Every vector extension up
 * to AVX-512 is measured. Source: Intel 64 and IA-32 Architectures Software Developer's Manual,
 * volume 2, chapter 2 and appendix A.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of general registers as machine code has them. */
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
	X86_NO_REGISTER = 16, /* memory, an immediate, flags */
};

enum x86_effect {
	X86_OTHER,         /* changes the registers in `written`, nothing else of interest */
	X86_PADDING,       /* does nothing: nop, int3 */
	X86_PUSH,          /* of `reg`, 8 bytes */
	X86_POP,           /* into `reg`, 8 bytes */
	X86_ADD,           /* reg += value */
	X86_MOVE,          /* reg = base */
	X86_ADDRESS,       /* reg = base + value */
	X86_LOAD,          /* reg = 8 bytes at base + value */
	X86_STORE,         /* 8 bytes at base + value = reg */
	X86_LEAVE,         /* rsp = rbp; pop rbp, which is `reg` */
	X86_CALL,          /* to address `value`, 0 when indirect */
	X86_JUMP,          /* to address `value` */
	X86_JUMP_IF,       /* to address `value`, or on */
	X86_JUMP_INDIRECT, /* somewhere */
	X86_RETURN,
	X86_TRAP, /* does not go on: ud2, hlt */
};

struct x86_instruction {
	uint8_t length; /* 1 to 15 */
	uint8_t effect; /* enum x86_effect */
	uint8_t reg, base;
	uint16_t written; /* general registers that change, one bit each; rsp of pushes and pops not
			     counted */
	int64_t value;
};

/*
 * Decodes the instruction at the start of `code`, which lies at `vaddr`. False when there is none:
 * not an instruction of 64-bit mode, or cut off by the end.
 */
bool x86_decode(const uint8_t *code, size_t length, uint64_t vaddr,
	struct x86_instruction *ret_instruction);
