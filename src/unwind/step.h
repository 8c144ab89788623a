/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One unwind step, the heart of sonde: compiled into the BPF programs and into user space (tests,
 * fuzzing, unprivileged mode). The includer defines, before including this file:
 *
 *   UNWIND_READ_U64(context, address, value_pointer)   reads target memory; 0 on success
 *   UNWIND_TABLE_WORD(table, index, value_pointer)     reads word `index` of a table; 0 on success
 *
 * rbp and rbx are followed lazily: a step only notes *where* the caller's value was saved, and the
 * value is read when a later frame needs it. Most frames cost one memory read, the return address.
 */
#pragma once

#include "unwind/table.h"
#include "wire/stack.h"

#ifndef UNWIND_READ_U64
#error "define UNWIND_READ_U64 and UNWIND_TABLE_WORD before including unwind/step.h"
#endif

/* DWARF register numbers, x86-64 psABI 3.38. */
enum unwind_register {
	UNWIND_RAX = 0,
	UNWIND_RDX,
	UNWIND_RCX,
	UNWIND_RBX,
	UNWIND_RSI,
	UNWIND_RDI,
	UNWIND_RBP,
	UNWIND_RSP,
	UNWIND_R8,
	UNWIND_R15 = 15,
	UNWIND_REGISTERS = 16,
};

/* A callee-saved register of the frame being unwound: a value, or the address where it was saved.
 */
struct unwind_saved_register {
	__u64 value;
	__u64 saved_at; /* 0: `value` holds it */
	__u64 lost;     /* nonzero: neither is known */
};

struct unwind_state {
	__u64 pc; /* of the current frame: exact, or a return address */
	__u64 sp;
	struct unwind_saved_register rbp, rbx;
	__u32 exact_pc; /* pc was interrupted, not called from: look up pc, not pc - 1 */
	__u32 is_leaf;  /* innermost frame: `leaf` registers count */
	__u64 leaf[UNWIND_REGISTERS];
};

/* The ucontext that the kernel pushes for a signal: offsets from rsp in the trampoline (x86-64
 * sigcontext). */
#define UNWIND_UCONTEXT_RBP 120
#define UNWIND_UCONTEXT_RBX 128
#define UNWIND_UCONTEXT_RSP 160
#define UNWIND_UCONTEXT_RIP 168

/* What unwind_step() says; anything below zero is -(enum wire_stop) - 1. */
#define UNWIND_CONTINUE           0
#define UNWIND_STOPPED(stop)      (-(int)(stop)-1)
#define UNWIND_STOP_REASON(value) ((enum wire_stop)(-(value)-1))

/* The address to look up for the current frame. */
static inline __attribute__((always_inline)) __u64 unwind_lookup_pc(
	const struct unwind_state *state)
{
	return state->exact_pc ? state->pc : state->pc - 1;
}

/* Reads the register's value now if it was only located so far. Returns 0, or a stop. */
static inline __attribute__((always_inline)) int unwind_register_value(
	void *context, struct unwind_saved_register *saved)
{
	if (saved->lost)
		return UNWIND_STOPPED(WIRE_STOP_NO_RULE);
	if (saved->saved_at) {
		if (UNWIND_READ_U64(context, saved->saved_at, &saved->value))
			return UNWIND_STOPPED(WIRE_STOP_READ_FAULT);
		saved->saved_at = 0;
	}
	return UNWIND_CONTINUE;
}

static inline __attribute__((always_inline)) void unwind_apply_saved(
	struct unwind_saved_register *saved, __u8 kind, __s16 offset, __u64 cfa, __u64 rbp)
{
	if (kind == UNWIND_SAVED_SAME)
		return;
	saved->lost = kind == UNWIND_SAVED_LOST;
	saved->saved_at = (kind == UNWIND_SAVED_AT_RBP ? rbp : cfa) + (__u64)(__s64)offset;
}

/* Restores everything from the signal's ucontext. */
static inline __attribute__((always_inline)) int unwind_step_signal(
	void *context, struct unwind_state *state)
{
	__u64 frame = state->sp;

	if (UNWIND_READ_U64(context, frame + UNWIND_UCONTEXT_RIP, &state->pc) ||
		UNWIND_READ_U64(context, frame + UNWIND_UCONTEXT_RSP, &state->sp))
		return UNWIND_STOPPED(WIRE_STOP_READ_FAULT);
	state->rbp = (struct unwind_saved_register){.saved_at = frame + UNWIND_UCONTEXT_RBP};
	state->rbx = (struct unwind_saved_register){.saved_at = frame + UNWIND_UCONTEXT_RBX};
	state->exact_pc = 1;
	state->is_leaf = 0;
	return state->pc ? UNWIND_CONTINUE : UNWIND_STOPPED(WIRE_STOP_COMPLETE);
}

/* Computes the CFA. Returns 0 and the address, or a stop. */
static inline __attribute__((always_inline)) int unwind_find_cfa(
	void *context, struct unwind_state *state, const struct unwind_rule *rule, __u64 *ret_cfa)
{
	__u64 offset = (__u64)(__s64)rule->cfa_offset, base;
	int result;

	switch (rule->cfa) {
	case UNWIND_CFA_RSP:
		*ret_cfa = state->sp + offset;
		return UNWIND_CONTINUE;
	case UNWIND_CFA_RBP:
		result = unwind_register_value(context, &state->rbp);
		*ret_cfa = state->rbp.value + offset;
		return result;
	case UNWIND_CFA_RBX:
		result = unwind_register_value(context, &state->rbx);
		*ret_cfa = state->rbx.value + offset;
		return result;
	case UNWIND_CFA_FRAME_POINTER:
		result = unwind_register_value(context, &state->rbp);
		*ret_cfa = state->rbp.value + 16;
		return result;
	case UNWIND_CFA_RBP_DEREF:
	case UNWIND_CFA_RSP_DEREF:
		base = state->sp;
		if (rule->cfa == UNWIND_CFA_RBP_DEREF) {
			result = unwind_register_value(context, &state->rbp);
			if (result)
				return result;
			base = state->rbp.value;
		}
		if (UNWIND_READ_U64(context, base + offset, ret_cfa))
			return UNWIND_STOPPED(WIRE_STOP_READ_FAULT);
		*ret_cfa += (__u64)(__s64)rule->cfa_addend;
		return UNWIND_CONTINUE;
	case UNWIND_CFA_LEAF_REGISTER:
		if (!state->is_leaf)
			return UNWIND_STOPPED(WIRE_STOP_NO_RULE);
		*ret_cfa = state->leaf[(__u16)rule->cfa_addend & (UNWIND_REGISTERS - 1)] + offset;
		return UNWIND_CONTINUE;
	case UNWIND_CFA_PLT:
		*ret_cfa = state->sp + 8 + ((state->pc & 15) >= offset ? 8 : 0);
		return UNWIND_CONTINUE;
	case UNWIND_CFA_END:
		return UNWIND_STOPPED(WIRE_STOP_COMPLETE);
	case UNWIND_CFA_OTHER_STACK:
		return UNWIND_STOPPED(WIRE_STOP_OTHER_STACK);
	default:
		return UNWIND_STOPPED(WIRE_STOP_NO_RULE);
	}
}

/* A frame that is found by rbp alone is not larger than this. */
#define UNWIND_MAX_GUESSED_FRAME (1ULL << 20)

/* Is there a call instruction right before `return_address`? E8 rel32, or FF /2 of 2 to 7 bytes. */
static inline __attribute__((always_inline)) int unwind_follows_call(
	void *context, __u64 return_address)
{
	__u64 code;

	if (UNWIND_READ_U64(context, return_address - 8, &code))
		return 0;
	if (((code >> 24) & 0xff) == 0xe8)
		return 1;
	/* Opcode and the middle bits of ModRM, at 2, 3, 4, 6 and 7 bytes before. */
	return ((code >> 48) & 0x38ff) == 0x10ff || ((code >> 40) & 0x38ff) == 0x10ff ||
	       ((code >> 32) & 0x38ff) == 0x10ff || ((code >> 16) & 0x38ff) == 0x10ff ||
	       ((code >> 8) & 0x38ff) == 0x10ff;
}

/*
 * Code in a file, but without a rule: V8's built-ins, hand-written assembly. If rbp points to a
 * frame just above, and the return address there follows a call, the frame pointer is believed;
 * else the stack ends here.
 */
static inline __attribute__((always_inline)) int unwind_step_without_rule(
	void *context, struct unwind_state *state)
{
	__u64 frame, return_address;

	if (unwind_register_value(context, &state->rbp))
		return UNWIND_STOPPED(WIRE_STOP_NO_RULE);
	frame = state->rbp.value;
	if (frame & 7 || frame < state->sp || frame - state->sp > UNWIND_MAX_GUESSED_FRAME ||
		UNWIND_READ_U64(context, frame + 8, &return_address) ||
		!unwind_follows_call(context, return_address))
		return UNWIND_STOPPED(WIRE_STOP_NO_RULE);
	state->rbp.saved_at = frame;
	state->sp = frame + 16;
	state->pc = return_address;
	state->exact_pc = 0;
	state->is_leaf = 0;
	return UNWIND_CONTINUE;
}

/*
 * Generated code without frame pointer shows its frame's size where the call returns to: `add $n,
 * %rsp; ret`, as the trampolines of `python -X perf` do. Returns n + 8, or 0 when the code is
 * another.
 */
static inline __attribute__((always_inline)) __u64 unwind_size_by_epilogue(
	void *context, const struct unwind_state *state)
{
	__u64 code;

	if (state->exact_pc || UNWIND_READ_U64(context, state->pc, &code) ||
		(code & 0xff00ffffff) != 0xc300c48348)
		return 0;
	return ((code >> 24) & 0x7f) + 8;
}

/* Leaves a frame that is `size` bytes large, return address included, and saved nothing. */
static inline __attribute__((always_inline)) int unwind_step_by_size(
	void *context, struct unwind_state *state, __u64 size)
{
	if (UNWIND_READ_U64(context, state->sp + size - 8, &state->pc))
		return UNWIND_STOPPED(WIRE_STOP_READ_FAULT);
	state->sp += size;
	return state->pc ? UNWIND_CONTINUE : UNWIND_STOPPED(WIRE_STOP_COMPLETE);
}

/*
 * Turns `state` into its caller's frame by `rule`. Returns UNWIND_CONTINUE, or
 * UNWIND_STOPPED(reason) when there is no caller to go to; then `state` is not to be used further.
 */
static inline __attribute__((always_inline)) int unwind_step(
	void *context, struct unwind_state *state, const struct unwind_rule *rule)
{
	__u64 cfa = 0, rbp_before = 0, return_address, frame_size;
	int result;

	if (rule->cfa == UNWIND_CFA_SIGNAL)
		return unwind_step_signal(context, state);
	if (rule->cfa == UNWIND_CFA_NONE)
		return unwind_step_without_rule(context, state);
	if (rule->cfa == UNWIND_CFA_FRAME_POINTER) {
		frame_size = unwind_size_by_epilogue(context, state);
		if (frame_size)
			return unwind_step_by_size(context, state, frame_size);
	}
	result = unwind_find_cfa(context, state, rule, &cfa);
	if (result)
		return result;
	if (rule->ra == UNWIND_RA_LEAF_REGISTER) {
		if (!state->is_leaf)
			return UNWIND_STOPPED(WIRE_STOP_NO_RULE);
		return_address = state->leaf[(__u16)rule->ra_offset & (UNWIND_REGISTERS - 1)];
	} else {
		/* Stacks grow down: a caller's frame that is not above this one means a corrupt
		 * stack, or another one. */
		if (cfa <= state->sp)
			return UNWIND_STOPPED(
				rule->cfa == UNWIND_CFA_FRAME_POINTER &&
						rule->cfa_offset == UNWIND_FRAMES_ON_STACKS
					? WIRE_STOP_OTHER_STACK
					: WIRE_STOP_NO_PROGRESS);
		if (UNWIND_READ_U64(context, cfa + (__u64)(__s64)rule->ra_offset, &return_address))
			return UNWIND_STOPPED(WIRE_STOP_READ_FAULT);
	}
	if (rule->rbp == UNWIND_SAVED_AT_RBP || rule->rbx == UNWIND_SAVED_AT_RBP) {
		result = unwind_register_value(context, &state->rbp);
		if (result)
			return result;
		rbp_before = state->rbp.value;
	}
	unwind_apply_saved(&state->rbp, rule->rbp, rule->rbp_offset, cfa, rbp_before);
	unwind_apply_saved(&state->rbx, rule->rbx, rule->rbx_offset, cfa, rbp_before);
	state->pc = return_address;
	state->sp = cfa;
	state->exact_pc = 0;
	state->is_leaf = 0;
	if (!return_address)
		return UNWIND_STOPPED(rule->cfa == UNWIND_CFA_FRAME_POINTER
					      ? WIRE_STOP_FRAME_POINTER
					      : WIRE_STOP_COMPLETE);
	return UNWIND_CONTINUE;
}

/*
 * Finds the rule for virtual address `vaddr` of the file whose table this is. Returns 0, or nonzero
 * when the table says nothing there (then the rule is UNWIND_CFA_NONE).
 */
static inline __attribute__((always_inline)) int unwind_table_find(
	void *table, __u64 vaddr, struct unwind_rule *ret_rule)
{
	__u64 word, pages_word, rows_word, page = vaddr >> UNWIND_PAGE_SHIFT;
	__u32 low = vaddr & 0xffff, first, count, index, rule_index, half, row;
	union {
		__u64 words[UNWIND_RULE_WORDS];
		struct unwind_rule rule;
	} found = {{0}};

	*ret_rule = (struct unwind_rule){.cfa = UNWIND_CFA_NONE};
	/* Header words by index: 2 = page_base | page_count, 3 = pages_at | rules_at, 4 = rows_at |
	 * row_count. */
	if (UNWIND_TABLE_WORD(table, 2, &word) || UNWIND_TABLE_WORD(table, 3, &pages_word) ||
		UNWIND_TABLE_WORD(table, 4, &rows_word))
		return -1;
	page -= (__u32)word;
	if (page >= word >> 32)
		return -1;
	if (UNWIND_TABLE_WORD(table, (__u32)pages_word + (__u32)page, &word))
		return -1;
	first = (__u32)word;
	count = (__u32)(word >> 32);

	/* The number of rows in the page at or below the address; branch-free for the verifier's
	 * sake. */
	index = 0;
	for (int step = 0; step < UNWIND_SEARCH_STEPS; step++) {
		__u32 goes_up;

		if (index >= count)
			break;
		half = (index + count) >> 1;
		row = first + half;
		if (UNWIND_TABLE_WORD(table, (__u32)rows_word + (row >> 1), &word))
			return -1;
		word >>= (row & 1) * 32;
		goes_up = -(__u32)((__u16)word <= low);
		index = (goes_up & (half + 1)) | (~goes_up & index);
		count = (goes_up & count) | (~goes_up & half);
	}
	row = first + index - 1;
	if (row >= rows_word >> 32) /* also row -1: nothing at or below the address */
		return -1;
	if (UNWIND_TABLE_WORD(table, (__u32)rows_word + (row >> 1), &word))
		return -1;
	rule_index = (__u16)((word >> ((row & 1) * 32)) >> 16);
	index = (__u32)(pages_word >> 32) + rule_index * UNWIND_RULE_WORDS;
	if (UNWIND_TABLE_WORD(table, index, &found.words[0]) ||
		UNWIND_TABLE_WORD(table, index + 1, &found.words[1]))
		return -1;
	*ret_rule = found.rule;
	return 0;
}
