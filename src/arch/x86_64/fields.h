/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of one x86-64 instruction: between its bytes (fields.c) and its meaning (code.c).
 */
#pragma once

#include "arch/code.h"

/* Which table the opcode counts in. */
enum x86_map {
	X86_MAP_PRIMARY,
	X86_MAP_0F,
	X86_MAP_0F38,
	X86_MAP_0F3A,
	X86_MAP_OTHER, /* half-precision and XOP: vector instructions all */
};

struct x86_fields {
	enum x86_map map;
	uint8_t opcode, length;
	bool operand_16, repeat_f2, repeat_f3; /* prefixes; of VEX and EVEX the implied ones */
	bool has_rex, wide;                    /* REX.W or its like */
	bool is_vector;                        /* VEX, EVEX or XOP */
	uint8_t extra_register;                /* vvvv */
	uint8_t low_register;                  /* in the opcode's low three bits, extended */
	bool has_modrm, is_memory;
	uint8_t reg, rm; /* extended to 4 bits; rm is a register only when not is_memory */
	uint8_t base;    /* is_memory: base register, ARCH_NO_REGISTER when rip or none */
	bool has_index;
	int64_t displacement, immediate;
};

/* False when these bytes are no instruction. */
bool x86_read_fields(const uint8_t *code, size_t length, struct x86_fields *ret_fields);
