/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading machine code as far as unwinding needs it: where each instruction ends, what it does to
 * the stack pointer and to saved registers, and where it goes on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include ARCH_HEADER(code_registers)

#define ARCH_NO_REGISTER ARCH_MACHINE_REGISTERS /* memory, an immediate, flags */

enum arch_effect {
	ARCH_OTHER,   /* changes the registers in `written`, nothing else of interest */
	ARCH_PADDING, /* does nothing: no-operations, and what debuggers and linkers fill with */
	ARCH_PUSH,    /* of `reg`, 8 bytes */
	ARCH_POP,     /* into `reg`, 8 bytes */
	ARCH_ADD,     /* reg += value */
	ARCH_MOVE,    /* reg = base */
	ARCH_ADDRESS, /* reg = base + value */
	ARCH_LOAD,    /* reg = 8 bytes at base + value, `pair` = the next 8 */
	ARCH_STORE,   /* 8 bytes at base + value = reg, the next 8 = `pair` */
	ARCH_LEAVE,   /* sp = fp; pop fp, which is `reg` */
	ARCH_CALL,    /* to address `value`, 0 when indirect */
	ARCH_JUMP,    /* to address `value` */
	ARCH_JUMP_IF, /* to address `value`, or on */
	ARCH_JUMP_INDIRECT, /* somewhere */
	ARCH_RETURN,
	ARCH_TRAP, /* does not go on */
};

struct arch_instruction {
	uint8_t length;
	uint8_t effect; /* enum arch_effect */
	uint8_t reg, base;
	uint32_t written; /* general registers that change, one bit each; not the stack pointer of
			     pushes and pops */
	int64_t value;
	/* Loads and stores of two registers, and of an address that moves the base. */
	bool has_pair;
	uint8_t pair;
	int16_t before, after; /* added to the base before the access, or after it */
};

/*
 * Decodes the instruction at the start of `code`, which lies at `vaddr`. False when there is none:
 * not an instruction, or cut off by the end.
 */
bool arch_decode(const uint8_t *code, size_t length, uint64_t vaddr,
	struct arch_instruction *ret_instruction);
