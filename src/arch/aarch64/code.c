/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an aarch64 instruction does to the stack pointer and to general registers. Source: Arm
 * Architecture Reference Manual for A-profile, chapter C4, "A64 Instruction Set Encoding".
 */
#include "arch/code.h"

#include <string.h>

#define BIT(reg)         (1U << (reg))
#define ZERO_OR_SP       31
#define BITS(word, n, m) ((word) >> (m) & ((1U << ((n) - (m) + 1)) - 1))

/* The `bits` low bits of `value` as a signed number. */
static int64_t sign_extend(uint32_t value, unsigned bits)
{
	return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

/* A register that is written, where 31 is the zero register. */
static uint32_t written_bit(uint32_t reg)
{
	return reg == ZERO_OR_SP ? 0 : BIT(reg);
}

static struct arch_instruction other(uint32_t written)
{
	return (struct arch_instruction){.effect = ARCH_OTHER, .written = written};
}

static struct arch_instruction to_address(enum arch_effect effect, uint64_t address)
{
	return (struct arch_instruction){.effect = effect, .value = (int64_t)address};
}

/* ---- data processing with an immediate ---- */

/* add and sub of an immediate: both registers may be the stack pointer when no flags are set. */
static struct arch_instruction add_immediate(uint32_t word)
{
	uint32_t to = BITS(word, 4, 0), from = BITS(word, 9, 5);
	int64_t value = BITS(word, 21, 10);
	bool sets_flags = word >> 29 & 1;

	if (word >> 22 & 1)
		value <<= 12;
	if (word >> 30 & 1)
		value = -value;
	if (sets_flags)
		return other(written_bit(to));
	if (!(word >> 31)) /* 32 bits: no address */
		return other(BIT(to));
	return (struct arch_instruction){.effect = to == from ? ARCH_ADD : ARCH_ADDRESS,
		.reg = (uint8_t)to,
		.base = (uint8_t)from,
		.written = BIT(to),
		.value = value};
}

static struct arch_instruction with_immediate(uint32_t word)
{
	uint32_t to = BITS(word, 4, 0);

	switch (BITS(word, 25, 23)) {
	case 2: /* add, sub */
		return add_immediate(word);
	case 4: /* logical: all but ands may write the stack pointer */
		return other(BITS(word, 30, 29) == 3 ? written_bit(to) : BIT(to));
	case 3: /* addg, subg of memory tags */
		return other(BIT(to));
	default: /* adr, adrp, moves, bit fields, extr */
		return other(written_bit(to));
	}
}

/* ---- branches, exceptions, system ---- */

/* br, blr, ret and their forms that check a signature. */
static struct arch_instruction branch_to_register(uint32_t word)
{
	switch (BITS(word, 22, 21)) {
	case 0:
		return to_address(ARCH_JUMP_INDIRECT, 0);
	case 1:
		return to_address(ARCH_CALL, 0);
	case 2:
		return to_address(word >> 23 & 1 ? ARCH_TRAP : ARCH_RETURN, 0); /* eret, ret */
	default:
		return other(0);
	}
}

static struct arch_instruction system_instruction(uint32_t word)
{
	if ((word & 0xffe0001f) == 0xd4000001) /* svc */
		return other(BIT(0));
	if (word >> 24 == 0xd4) /* brk, hlt */
		return to_address(ARCH_TRAP, 0);
	if (word == 0xd503201f) /* nop */
		return to_address(ARCH_PADDING, 0);
	if ((word & 0xfff00000) == 0xd5300000 || (word & 0xfff80000) == 0xd5280000) /* mrs, sysl */
		return other(written_bit(BITS(word, 4, 0)));
	return other(0); /* hints, the signing of x30 among them; barriers, msr */
}

static struct arch_instruction branch(uint32_t word, uint64_t vaddr)
{
	uint64_t far = vaddr + (uint64_t)(sign_extend(BITS(word, 25, 0), 26) * 4);
	uint64_t near = vaddr + (uint64_t)(sign_extend(BITS(word, 23, 5), 19) * 4);

	switch (BITS(word, 31, 26)) {
	case 0x05:
		return to_address(ARCH_JUMP, far);
	case 0x25:
		return to_address(ARCH_CALL, far);
	}
	switch (BITS(word, 31, 25)) {
	case 0x1a: /* cbz, cbnz */
	case 0x5a:
	case 0x2a: /* b.cond */
		return to_address(ARCH_JUMP_IF, near);
	case 0x1b: /* tbz, tbnz */
	case 0x5b:
		return to_address(
			ARCH_JUMP_IF, vaddr + (uint64_t)(sign_extend(BITS(word, 18, 5), 14) * 4));
	case 0x6b:
		return branch_to_register(word);
	default:
		return system_instruction(word);
	}
}

/* ---- loads and stores ---- */

/* The base changes by `value` before or after the access, by bits 24 and 23 of the pairs' forms. */
static void set_write_back(struct arch_instruction *instruction, bool is_before)
{
	if (is_before)
		instruction->before = (int16_t)instruction->value;
	else
		instruction->after = (int16_t)instruction->value;
	instruction->value = 0;
	instruction->written |= BIT(instruction->base);
}

static uint8_t memory_register(uint32_t reg)
{
	return reg == ZERO_OR_SP ? ARCH_NO_REGISTER : (uint8_t)reg;
}

/* What changes when it is not followed: of a load the registers, of either a base that moves. */
static struct arch_instruction other_access(uint32_t word, bool is_load, bool moves_base)
{
	uint32_t written = is_load ? written_bit(BITS(word, 4, 0)) : 0;

	return other(written | (moves_base ? BIT(BITS(word, 9, 5)) : 0));
}

/* ldp, stp of two 8-byte general registers; of others what they write. */
static struct arch_instruction access_pair(uint32_t word)
{
	uint32_t mode = BITS(word, 24, 23), first = BITS(word, 4, 0), second = BITS(word, 14, 10);
	bool is_load = word >> 22 & 1, is_vector = word >> 26 & 1, moves_base = mode & 1;
	unsigned scale = is_vector ? 2 + BITS(word, 31, 30) : 2 + (word >> 31);
	struct arch_instruction instruction = {
		.effect = is_load ? ARCH_LOAD : ARCH_STORE,
		.reg = memory_register(first),
		.base = (uint8_t)BITS(word, 9, 5),
		.has_pair = true,
		.pair = memory_register(second),
		.value = sign_extend(BITS(word, 21, 15), 7) * (1 << scale),
	};

	if (is_load && !is_vector)
		instruction.written = written_bit(first) | written_bit(second);
	if (is_vector || BITS(word, 31, 30) != 2) {
		/* Nothing is kept in what is no whole register, but the base may be the stack's. */
		if (!moves_base)
			return other(instruction.written);
		instruction.reg = instruction.pair = ARCH_NO_REGISTER;
		instruction.effect = is_load && !is_vector ? ARCH_OTHER : ARCH_STORE;
		if (instruction.effect == ARCH_OTHER)
			return other(instruction.written | BIT(instruction.base));
	}
	if (moves_base)
		set_write_back(&instruction, mode == 3);
	return instruction;
}

/* ldr, str of one register with an immediate. */
static struct arch_instruction access_one(uint32_t word)
{
	bool is_vector = word >> 26 & 1, is_unsigned = word >> 24 & 1;
	bool is_load = BITS(word, 23, 22) != 0 && !is_vector, is_whole = word >> 30 == 3;
	uint32_t form = BITS(word, 11, 10);
	struct arch_instruction instruction = {
		.effect = is_load ? ARCH_LOAD : ARCH_STORE,
		.reg = memory_register(BITS(word, 4, 0)),
		.base = (uint8_t)BITS(word, 9, 5),
		.written = is_load ? written_bit(BITS(word, 4, 0)) : 0,
		.value = is_unsigned ? (int64_t)BITS(word, 21, 10) * 8
				     : sign_extend(BITS(word, 20, 12), 9),
	};
	bool moves_base = !is_unsigned && !(word >> 21 & 1) && (form & 1);

	if (!is_unsigned && word >> 21 & 1) /* by a register; atomic operations */
		return other_access(word, !is_vector, word >> 10 & 1);
	if (is_whole && !is_vector && BITS(word, 23, 22) < 2) {
		if (moves_base)
			set_write_back(&instruction, form == 3);
		return instruction;
	}
	if (!moves_base)
		return other_access(word, is_load, false);
	if (is_load)
		return other_access(word, true, true);
	instruction.effect = ARCH_STORE; /* of what is not followed, but the base moves */
	instruction.reg = ARCH_NO_REGISTER;
	set_write_back(&instruction, form == 3);
	return instruction;
}

static struct arch_instruction load_or_store(uint32_t word)
{
	bool is_vector = word >> 26 & 1;

	switch (BITS(word, 29, 27)) {
	case 5:
		return access_pair(word);
	case 7:
		return access_one(word);
	case 3: /* of a constant beside the code; memory tags */
		return other_access(word, !is_vector, (word >> 24 & 1) && (word >> 10 & 1));
	default: /* exclusive, of several vectors */
		if (is_vector)
			return other_access(word, false, word >> 23 & 1);
		return other(written_bit(BITS(word, 4, 0)) | written_bit(BITS(word, 20, 16)) |
			     written_bit(BITS(word, 14, 10)));
	}
}

/* ---- data processing with registers ---- */

static struct arch_instruction with_registers(uint32_t word)
{
	uint32_t to = BITS(word, 4, 0);

	/* mov is orr with the zero register. */
	if ((word & 0xffe0ffe0) == 0xaa0003e0 && to != ZERO_OR_SP &&
		BITS(word, 20, 16) != ZERO_OR_SP)
		return (struct arch_instruction){.effect = ARCH_MOVE,
			.reg = (uint8_t)to,
			.base = (uint8_t)BITS(word, 20, 16),
			.written = BIT(to)};
	/* add and sub of an extended register may write the stack pointer. */
	if ((word & 0x3fe00000) == 0x0b200000)
		return other(BIT(to));
	/* Comparisons of conditions write flags alone. */
	if ((word & 0x1fe00000) == 0x1a400000)
		return other(0);
	return other(written_bit(to));
}

/* Conversions and moves from vector registers to general ones. */
static struct arch_instruction vector(uint32_t word)
{
	uint32_t to = written_bit(BITS(word, 4, 0)), operation = BITS(word, 18, 16);
	bool is_move = (word & 0xbfe0fc00) == 0x0e003c00 || (word & 0xbfe0fc00) == 0x0e002c00;

	if ((word & 0x5f20fc00) == 0x1e200000) /* with integers: 2, 3 and 7 are to a vector */
		return other(operation == 2 || operation == 3 || operation == 7 ? 0 : to);
	if ((word & 0x5f200000) == 0x1e000000) /* with fixed-point numbers */
		return other(operation < 2 ? to : 0);
	return other(is_move ? to : 0); /* umov, smov */
}

/* Counts of SVE's elements, lengths and predicates; addvl and addpl may write the stack pointer. */
static struct arch_instruction scalable(uint32_t word)
{
	uint32_t to = BITS(word, 4, 0);

	if ((word & 0xffa0f800) == 0x04205000)
		return other(BIT(to));
	return other(word >> 24 == 0x04 || word >> 24 == 0x25 ? written_bit(to) : 0);
}

static bool interpret(uint32_t word, uint64_t vaddr, struct arch_instruction *ret_instruction)
{
	switch (BITS(word, 28, 25)) {
	case 0x0: /* udf; the rest is of matrices, or of nobody */
		*ret_instruction = to_address(ARCH_TRAP, 0);
		return word < 0x10000 || word >> 31;
	case 0x1:
	case 0x3:
		return false;
	case 0x2:
		*ret_instruction = scalable(word);
		return true;
	case 0x8:
	case 0x9:
		*ret_instruction = with_immediate(word);
		return true;
	case 0xa:
	case 0xb:
		*ret_instruction = branch(word, vaddr);
		return true;
	case 0x5:
	case 0xd:
		*ret_instruction = with_registers(word);
		return true;
	case 0x7:
	case 0xf:
		*ret_instruction = vector(word);
		return true;
	default:
		*ret_instruction = load_or_store(word);
		return true;
	}
}

bool arch_decode(const uint8_t *code, size_t length, uint64_t vaddr,
	struct arch_instruction *ret_instruction)
{
	struct arch_instruction instruction;
	uint32_t word;

	if (length < sizeof(word))
		return false;
	memcpy(&word, code, sizeof(word));
	if (!interpret(word, vaddr, &instruction))
		return false;
	instruction.length = sizeof(word);
	*ret_instruction = instruction;
	return true;
}
