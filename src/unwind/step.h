/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One unwind step, the heart of sonde: compiled into the BPF programs and into user space (tests,
 * fuzzing, unprivileged mode). The includer defines, before including this file:
 *
 *   UNWIND_READ_U64(context, address, value_pointer)   reads target memory; 0 on success
 *   UNWIND_TABLE_WORD(table, index, value_pointer)     reads word `index` of a table; 0 on success
 *
 * The frame pointer and the second register (arch/arch.h) are followed lazily: a step only notes
 * *where* the caller's value was saved, and the value is read when a later frame needs it. Most
 * frames cost one memory read, the return address.
 */
#pragma once

#include "arch/arch.h"
#include "unwind/table.h"
#include "wire/stack.h"

#ifndef UNWIND_READ_U64
#error "define UNWIND_READ_U64 and UNWIND_TABLE_WORD before including unwind/step.h"
#endif

#include ARCH_HEADER(step)

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
	struct unwind_saved_register fp, second;
	__u32 exact_pc; /* pc was interrupted, not called from: look up pc, not pc - 1 */
	__u32 is_leaf;  /* innermost frame: `leaf` registers count */
	__u64 leaf[ARCH_REGISTERS];
	/* Left by its frame pointer, a frame says where the caller's ends, but not where it begins.
	 */
	__u64 sp_is_bound;
};

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
	struct unwind_saved_register *saved, __u8 kind, __s16 offset, __u64 cfa, __u64 fp)
{
	if (kind == UNWIND_SAVED_SAME)
		return;
	saved->lost = kind == UNWIND_SAVED_LOST;
	saved->saved_at = (kind == UNWIND_SAVED_AT_FP ? fp : cfa) + (__u64)(__s64)offset;
}

/* Restores everything from the signal's ucontext. */
static inline __attribute__((always_inline)) int unwind_step_signal(
	void *context, struct unwind_state *state)
{
	__u64 frame = state->sp;

	if (UNWIND_READ_U64(context, frame + ARCH_UCONTEXT_PC, &state->pc) ||
		UNWIND_READ_U64(context, frame + ARCH_UCONTEXT_SP, &state->sp))
		return UNWIND_STOPPED(WIRE_STOP_READ_FAULT);
	state->fp = (struct unwind_saved_register){.saved_at = frame + ARCH_UCONTEXT_FP};
	state->second = (struct unwind_saved_register){.saved_at = frame + ARCH_UCONTEXT_SECOND};
	state->exact_pc = 1;
	state->is_leaf = 0;
	if (ARCH_HAS_LINK_REGISTER)
		state->sp_is_bound = 0;
	return state->pc ? UNWIND_CONTINUE : UNWIND_STOPPED(WIRE_STOP_COMPLETE);
}

/* The call that made this frame overwrote the link register of its caller. */
static inline __attribute__((always_inline)) void unwind_lose_link(struct unwind_state *state)
{
	if (ARCH_HAS_LINK_REGISTER)
		state->second.lost = 1;
}

/* Computes the CFA. Returns 0 and the address, or a stop. */
static inline __attribute__((always_inline)) int unwind_find_cfa(
	void *context, struct unwind_state *state, const struct unwind_rule *rule, __u64 *ret_cfa)
{
	__u64 offset = (__u64)(__s64)rule->cfa_offset, base;
	int result;

	switch (rule->cfa) {
	case UNWIND_CFA_SP:
		*ret_cfa = state->sp + offset;
		return UNWIND_CONTINUE;
	case UNWIND_CFA_FP:
		result = unwind_register_value(context, &state->fp);
		*ret_cfa = state->fp.value + offset;
		return result;
	case UNWIND_CFA_SECOND:
		result = unwind_register_value(context, &state->second);
		*ret_cfa = state->second.value + offset;
		return result;
	case UNWIND_CFA_FRAME_POINTER:
		result = unwind_register_value(context, &state->fp);
		*ret_cfa = state->fp.value + 16;
		return result;
	case UNWIND_CFA_FP_DEREF:
	case UNWIND_CFA_SP_DEREF:
		base = state->sp;
		if (rule->cfa == UNWIND_CFA_FP_DEREF) {
			result = unwind_register_value(context, &state->fp);
			if (result)
				return result;
			base = state->fp.value;
		}
		if (UNWIND_READ_U64(context, base + offset, ret_cfa))
			return UNWIND_STOPPED(WIRE_STOP_READ_FAULT);
		*ret_cfa += (__u64)(__s64)rule->cfa_addend;
		return UNWIND_CONTINUE;
	case UNWIND_CFA_LEAF_REGISTER:
		if (!state->is_leaf)
			return UNWIND_STOPPED(WIRE_STOP_NO_RULE);
		*ret_cfa = state->leaf[(__u16)rule->cfa_addend & (ARCH_REGISTERS - 1)] + offset;
		return UNWIND_CONTINUE;
	case UNWIND_CFA_PLT:
		*ret_cfa = arch_plt_cfa(state->sp, state->pc, offset);
		return UNWIND_CONTINUE;
	case UNWIND_CFA_END:
		return UNWIND_STOPPED(WIRE_STOP_COMPLETE);
	case UNWIND_CFA_OTHER_STACK:
		return UNWIND_STOPPED(WIRE_STOP_OTHER_STACK);
	default:
		return UNWIND_STOPPED(WIRE_STOP_NO_RULE);
	}
}

/* A frame that is found by its frame pointer alone is not larger than this. */
#define UNWIND_MAX_GUESSED_FRAME (1ULL << 20)

/*
 * Code in a file, but without a rule: V8's built-ins, hand-written assembly. If the frame
 * pointer points to a frame just above, and the return address there follows a call, it is
 * believed; else the stack ends here.
 */
static inline __attribute__((always_inline)) int unwind_step_without_rule(
	void *context, struct unwind_state *state)
{
	__u64 frame, return_address;

	if (unwind_register_value(context, &state->fp))
		return UNWIND_STOPPED(WIRE_STOP_NO_RULE);
	frame = state->fp.value;
	if (frame & 7 || frame < state->sp || frame - state->sp > UNWIND_MAX_GUESSED_FRAME ||
		UNWIND_READ_U64(context, frame + 8, &return_address) ||
		!arch_follows_call(context, arch_code_address(return_address)))
		return UNWIND_STOPPED(WIRE_STOP_NO_RULE);
	state->fp.saved_at = frame;
	state->sp = frame + 16;
	if (ARCH_HAS_LINK_REGISTER)
		state->sp_is_bound = 1;
	state->pc = arch_code_address(return_address);
	state->exact_pc = 0;
	state->is_leaf = 0;
	unwind_lose_link(state);
	return UNWIND_CONTINUE;
}

/*
 * Stacks grow down: a caller's frame that is not above this one means a corrupt stack, or another
 * one.
 */
static inline __attribute__((always_inline)) int unwind_stop_below(const struct unwind_rule *rule)
{
	return UNWIND_STOPPED(
		rule->cfa == UNWIND_CFA_FRAME_POINTER && rule->cfa_offset == UNWIND_FRAMES_ON_STACKS
			? WIRE_STOP_OTHER_STACK
			: WIRE_STOP_NO_PROGRESS);
}

/* Leaves a frame by the caller's frame pointer and return address, which lie side by side. */
static inline __attribute__((always_inline)) int unwind_step_by_record(
	void *context, struct unwind_state *state, const struct unwind_rule *rule)
{
	__u64 return_address, frame;
	int result = unwind_register_value(context, &state->fp);

	if (result)
		return result;
	frame = state->fp.value;
	if (frame < state->sp)
		return unwind_stop_below(rule);
	if (UNWIND_READ_U64(context, frame + 8, &return_address))
		return UNWIND_STOPPED(WIRE_STOP_READ_FAULT);
	state->fp.saved_at = frame;
	state->sp = frame + 16;
	state->sp_is_bound = 1;
	state->pc = arch_code_address(return_address);
	state->exact_pc = state->is_leaf = 0;
	unwind_lose_link(state);
	return state->pc ? UNWIND_CONTINUE : UNWIND_STOPPED(WIRE_STOP_FRAME_POINTER);
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
	__u64 cfa = 0, fp_before = 0, return_address, frame_size;
	int result;

	if (rule->cfa == UNWIND_CFA_SIGNAL)
		return unwind_step_signal(context, state);
	if (rule->cfa == UNWIND_CFA_NONE)
		return unwind_step_without_rule(context, state);
	if (rule->cfa == UNWIND_CFA_FRAME_POINTER) {
		frame_size = state->exact_pc ? 0 : arch_size_by_epilogue(context, state->pc);
		if (frame_size)
			return unwind_step_by_size(context, state, frame_size);
	}
	/* Where calls push nothing, a frame pointer does not say where the stack pointer was. */
	if (ARCH_HAS_LINK_REGISTER && (rule->cfa == UNWIND_CFA_FRAME_POINTER ||
					      (rule->cfa == UNWIND_CFA_SP && state->sp_is_bound)))
		return unwind_step_by_record(context, state, rule);
	result = unwind_find_cfa(context, state, rule, &cfa);
	if (result)
		return result;
	if (ARCH_HAS_LINK_REGISTER && rule->ra == UNWIND_RA_SECOND) {
		result = unwind_register_value(context, &state->second);
		if (result)
			return result;
		return_address = state->second.value;
	} else if (rule->ra == UNWIND_RA_LEAF_REGISTER) {
		if (!state->is_leaf)
			return UNWIND_STOPPED(WIRE_STOP_NO_RULE);
		return_address = state->leaf[(__u16)rule->ra_offset & (ARCH_REGISTERS - 1)];
	} else {
		if (cfa <= state->sp)
			return unwind_stop_below(rule);
		if (UNWIND_READ_U64(context, cfa + (__u64)(__s64)rule->ra_offset, &return_address))
			return UNWIND_STOPPED(WIRE_STOP_READ_FAULT);
	}
	if (rule->fp == UNWIND_SAVED_AT_FP || rule->second == UNWIND_SAVED_AT_FP) {
		result = unwind_register_value(context, &state->fp);
		if (result)
			return result;
		fp_before = state->fp.value;
	}
	unwind_apply_saved(&state->fp, rule->fp, rule->fp_offset, cfa, fp_before);
	unwind_apply_saved(&state->second, rule->second, rule->second_offset, cfa, fp_before);
	unwind_lose_link(state);
	return_address = arch_code_address(return_address);
	state->pc = return_address;
	state->sp = cfa;
	if (ARCH_HAS_LINK_REGISTER)
		state->sp_is_bound = 0;
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
