/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/frame_state.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"

/* Depths beyond this are no frames: unknown, so that sums never overflow. */
#define MAX_DEPTH (1 << 30)

/* What a called function may change (psABI figure 3.4): rax rcx rdx rsi rdi r8 to r11. */
#define CALLER_SAVED 0x0fc7

static int32_t checked(int64_t value)
{
	return value > -MAX_DEPTH && value < MAX_DEPTH ? (int32_t)value : FRAME_UNKNOWN;
}

/* `known` plus `value`, when it is known. */
static int32_t plus(int32_t known, int64_t value)
{
	if (known == FRAME_UNKNOWN || value <= -MAX_DEPTH || value >= MAX_DEPTH)
		return FRAME_UNKNOWN;
	return checked(known + value);
}

struct frame_state frame_state_at_entry(void)
{
	struct frame_state state = {.slot_at = FRAME_UNKNOWN};

	for (size_t i = 0; i < X86_REGISTERS; i++)
		state.to_cfa[i] = FRAME_UNKNOWN;
	state.to_cfa[X86_RSP] = 8;
	return state;
}

static struct frame_saved *saved_of(struct frame_state *state, uint8_t reg)
{
	return reg == X86_RBP ? &state->rbp : reg == X86_RBX ? &state->rbx : NULL;
}

/* The register takes a value that is `to_cfa` below the CFA, or an unknown one. */
static void set_register(struct frame_state *state, uint8_t reg, int32_t to_cfa)
{
	struct frame_saved *saved = saved_of(state, reg);

	state->to_cfa[reg] = to_cfa;
	if (saved && saved->kind == FRAME_SAVED_SAME)
		saved->kind = FRAME_SAVED_LOST;
}

/* rsp moves by `bytes`. */
static void move_stack(struct frame_state *state, int64_t bytes)
{
	state->to_cfa[X86_RSP] = plus(state->to_cfa[X86_RSP], -bytes);
	state->slot_at = plus(state->slot_at, -bytes);
	if (state->slot_at < 0)
		state->slot_at = FRAME_UNKNOWN;
}

/* rsp becomes another register's value. */
static void set_stack(struct frame_state *state, int32_t to_cfa)
{
	state->to_cfa[X86_RSP] = to_cfa;
	state->slot_at = FRAME_UNKNOWN;
}

/* `reg` was written to memory at base + value. */
static void store(struct frame_state *state, uint8_t reg, uint8_t base, int64_t value)
{
	struct frame_saved *saved = saved_of(state, reg);
	int32_t to_cfa = plus(state->to_cfa[base], -value);

	if (saved && saved->kind == FRAME_SAVED_SAME && to_cfa != FRAME_UNKNOWN)
		*saved = (struct frame_saved){FRAME_SAVED_AT_CFA, -to_cfa};
	if (base != X86_RSP)
		return;
	if (state->slot_at != FRAME_UNKNOWN && value == state->slot_at)
		state->slot_at = FRAME_UNKNOWN;
	if (state->to_cfa[reg] == FRAME_UNKNOWN || value < 0 || value >= MAX_DEPTH)
		return;
	state->slot_at = (int32_t)value;
	state->slot_to_cfa = state->to_cfa[reg];
}

/* `reg` was read from memory at base + value. */
static void load(struct frame_state *state, uint8_t reg, uint8_t base, int64_t value)
{
	struct frame_saved *saved = saved_of(state, reg);
	int32_t to_cfa = plus(state->to_cfa[base], -value), loaded = FRAME_UNKNOWN;
	bool restores = saved && saved->kind == FRAME_SAVED_AT_CFA && to_cfa != FRAME_UNKNOWN &&
			saved->offset == -to_cfa;

	if (base == X86_RSP && state->slot_at != FRAME_UNKNOWN && value == state->slot_at)
		loaded = state->slot_to_cfa;
	if (reg == X86_RSP)
		set_stack(state, loaded);
	else
		set_register(state, reg, loaded);
	if (restores)
		saved->kind = FRAME_SAVED_SAME;
}

static void push(struct frame_state *state, uint8_t reg)
{
	int32_t pushed = reg == X86_NO_REGISTER ? FRAME_UNKNOWN : state->to_cfa[reg];

	move_stack(state, -8);
	if (reg == X86_NO_REGISTER)
		return;
	store(state, reg, X86_RSP, 0);
	/* push %rsp stores what rsp was before. */
	if (reg == X86_RSP && pushed != FRAME_UNKNOWN) {
		state->slot_at = 0;
		state->slot_to_cfa = pushed;
	}
}

static void pop(struct frame_state *state, uint8_t reg)
{
	if (reg == X86_NO_REGISTER) {
		move_stack(state, 8);
	} else if (reg == X86_RSP) {
		load(state, X86_RSP, X86_RSP, 0);
	} else {
		load(state, reg, X86_RSP, 0);
		move_stack(state, 8);
	}
}

static void set_sum(struct frame_state *state, uint8_t reg, uint8_t base, int64_t value)
{
	if (reg == X86_RSP && base == X86_RSP)
		move_stack(state, value);
	else if (reg == X86_RSP)
		set_stack(state, plus(state->to_cfa[base], -value));
	else
		set_register(state, reg, plus(state->to_cfa[base], -value));
}

static void forget(struct frame_state *state, uint16_t registers)
{
	for (unsigned reg = 0; reg < X86_REGISTERS; reg++) {
		if (!(registers >> reg & 1))
			continue;
		if (reg == X86_RSP)
			set_stack(state, FRAME_UNKNOWN);
		else
			set_register(state, reg, FRAME_UNKNOWN);
	}
}

void frame_state_apply(struct frame_state *state, const struct x86_instruction *instruction)
{
	switch (instruction->effect) {
	case X86_PUSH:
		push(state, instruction->reg);
		break;
	case X86_POP:
		pop(state, instruction->reg);
		break;
	case X86_ADD:
		set_sum(state, instruction->reg, instruction->reg, instruction->value);
		break;
	case X86_MOVE:
		set_sum(state, instruction->reg, instruction->base, 0);
		break;
	case X86_ADDRESS:
		set_sum(state, instruction->reg, instruction->base, instruction->value);
		break;
	case X86_LOAD:
		load(state, instruction->reg, instruction->base, instruction->value);
		break;
	case X86_STORE:
		store(state, instruction->reg, instruction->base, instruction->value);
		break;
	case X86_LEAVE:
		set_stack(state, state->to_cfa[X86_RBP]);
		pop(state, X86_RBP);
		break;
	case X86_CALL:
		forget(state, CALLER_SAVED);
		break;
	default:
		forget(state, instruction->written);
		break;
	}
}

/* push %rbp; mov %rsp, %rbp: what is called a frame pointer. */
static bool has_frame_pointer(const struct frame_state *state)
{
	return state->to_cfa[X86_RBP] == 16 && state->rbp.kind == FRAME_SAVED_AT_CFA &&
	       state->rbp.offset == -16;
}

void frame_state_after_popping_call(struct frame_state *state)
{
	if (has_frame_pointer(state))
		set_stack(state, FRAME_UNKNOWN);
}

static bool merge_saved(struct frame_saved *saved, const struct frame_saved *other)
{
	if (saved->kind == FRAME_SAVED_LOST ||
		(saved->kind == other->kind && saved->offset == other->offset))
		return false;
	if (saved->kind == FRAME_SAVED_SAME && other->kind == FRAME_SAVED_SAME)
		return false;
	saved->kind = FRAME_SAVED_LOST;
	return true;
}

int frame_state_merge(struct frame_state *state, const struct frame_state *other)
{
	int changed = 0;

	/* Below a frame pointer the depth may vary: arguments pushed in a loop. */
	if (state->to_cfa[X86_RSP] != FRAME_UNKNOWN && other->to_cfa[X86_RSP] != FRAME_UNKNOWN &&
		state->to_cfa[X86_RSP] != other->to_cfa[X86_RSP] &&
		!(has_frame_pointer(state) && has_frame_pointer(other)))
		return -EINVAL;
	for (size_t i = 0; i < X86_REGISTERS; i++) {
		if (state->to_cfa[i] == FRAME_UNKNOWN || state->to_cfa[i] == other->to_cfa[i])
			continue;
		state->to_cfa[i] = FRAME_UNKNOWN;
		changed = 1;
	}
	if (state->slot_at != FRAME_UNKNOWN &&
		(state->slot_at != other->slot_at || state->slot_to_cfa != other->slot_to_cfa)) {
		state->slot_at = FRAME_UNKNOWN;
		changed = 1;
	}
	changed |= merge_saved(&state->rbp, &other->rbp);
	changed |= merge_saved(&state->rbx, &other->rbx);
	return changed;
}

bool frame_state_can_return(const struct frame_state *state)
{
	return state->to_cfa[X86_RSP] == 8;
}

bool frame_state_cannot_return(const struct frame_state *state)
{
	return state->to_cfa[X86_RSP] != FRAME_UNKNOWN && state->to_cfa[X86_RSP] != 8;
}

static uint8_t saved_kind(const struct frame_saved *saved, int16_t *ret_offset)
{
	if (saved->kind == FRAME_SAVED_SAME)
		return UNWIND_SAVED_SAME;
	if (saved->kind == FRAME_SAVED_LOST || saved->offset < INT16_MIN ||
		saved->offset > INT16_MAX)
		return UNWIND_SAVED_LOST;
	*ret_offset = (int16_t)saved->offset;
	return UNWIND_SAVED_AT_CFA;
}

/* Any register will do in the innermost frame. */
static bool set_leaf_cfa(const struct frame_state *state, struct unwind_rule *rule)
{
	/* By machine number; the table has DWARF's. */
	static const uint8_t dwarf_numbers[X86_REGISTERS] = {
		0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

	for (size_t i = 0; i < X86_REGISTERS; i++) {
		if (state->to_cfa[i] == FRAME_UNKNOWN)
			continue;
		rule->cfa = UNWIND_CFA_LEAF_REGISTER;
		rule->cfa_addend = dwarf_numbers[i];
		rule->cfa_offset = state->to_cfa[i];
		return true;
	}
	return false;
}

/* The stack pointer that was saved in memory. */
static bool set_slot_cfa(const struct frame_state *state, struct unwind_rule *rule)
{
	if (state->slot_at == FRAME_UNKNOWN || state->slot_to_cfa < INT16_MIN ||
		state->slot_to_cfa > INT16_MAX)
		return false;
	rule->cfa = UNWIND_CFA_RSP_DEREF;
	rule->cfa_offset = state->slot_at;
	rule->cfa_addend = (int16_t)state->slot_to_cfa;
	return true;
}

/*
 * A frame pointer comes before rsp: callees that pop their own arguments move rsp unseen. A saved
 * stack pointer comes before registers that only count in the innermost frame.
 */
static bool set_cfa(const struct frame_state *state, struct unwind_rule *rule)
{
	static const struct {
		enum x86_register reg;
		enum unwind_cfa cfa;
	} best[] = {
		{X86_RSP, UNWIND_CFA_RSP}, {X86_RBP, UNWIND_CFA_RBP}, {X86_RBX, UNWIND_CFA_RBX}};

	for (size_t i = has_frame_pointer(state) ? 1 : 0; i < ARRAY_SIZE(best); i++) {
		if (state->to_cfa[best[i].reg] == FRAME_UNKNOWN)
			continue;
		rule->cfa = (uint8_t)best[i].cfa;
		rule->cfa_offset = state->to_cfa[best[i].reg];
		return true;
	}
	return set_slot_cfa(state, rule) || set_leaf_cfa(state, rule);
}

bool frame_state_to_rule(const struct frame_state *state, struct unwind_rule *ret_rule)
{
	struct unwind_rule rule = {.ra_offset = -8};

	if (!set_cfa(state, &rule))
		return false;
	rule.rbp = saved_kind(&state->rbp, &rule.rbp_offset);
	rule.rbx = saved_kind(&state->rbx, &rule.rbx_offset);
	*ret_rule = rule;
	return true;
}
