/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/frame_state.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"

/* Depths beyond this are no frames: unknown, so that sums never overflow. */
#define MAX_DEPTH (1 << 30)

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

	for (size_t i = 0; i < ARCH_MACHINE_REGISTERS; i++)
		state.to_cfa[i] = FRAME_UNKNOWN;
	state.to_cfa[ARCH_SP] = ARCH_ENTRY_CFA;
	return state;
}

static struct frame_saved *saved_of(struct frame_state *state, uint8_t reg)
{
	return reg == ARCH_FP ? &state->fp : reg == ARCH_SECOND ? &state->second : NULL;
}

/* The register takes a value that is `to_cfa` below the CFA, or an unknown one. */
static void set_register(struct frame_state *state, uint8_t reg, int32_t to_cfa)
{
	struct frame_saved *saved = saved_of(state, reg);

	state->to_cfa[reg] = to_cfa;
	if (saved && saved->kind == FRAME_SAVED_SAME)
		saved->kind = FRAME_SAVED_LOST;
}

/* The stack pointer moves by `bytes`. */
static void move_stack(struct frame_state *state, int64_t bytes)
{
	state->to_cfa[ARCH_SP] = plus(state->to_cfa[ARCH_SP], -bytes);
	state->slot_at = plus(state->slot_at, -bytes);
	if (state->slot_at < 0)
		state->slot_at = FRAME_UNKNOWN;
}

/* The stack pointer becomes another register's value. */
static void set_stack(struct frame_state *state, int32_t to_cfa)
{
	state->to_cfa[ARCH_SP] = to_cfa;
	state->slot_at = FRAME_UNKNOWN;
}

/* `reg` was written to memory at base + value. */
static void store(struct frame_state *state, uint8_t reg, uint8_t base, int64_t value)
{
	struct frame_saved *saved = saved_of(state, reg);
	int32_t to_cfa = plus(state->to_cfa[base], -value);

	if (saved && saved->kind == FRAME_SAVED_SAME && to_cfa != FRAME_UNKNOWN)
		*saved = (struct frame_saved){FRAME_SAVED_AT_CFA, -to_cfa};
	if (base != ARCH_SP)
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

	if (base == ARCH_SP && state->slot_at != FRAME_UNKNOWN && value == state->slot_at)
		loaded = state->slot_to_cfa;
	if (reg == ARCH_SP)
		set_stack(state, loaded);
	else
		set_register(state, reg, loaded);
	if (restores)
		saved->kind = FRAME_SAVED_SAME;
}

static void push(struct frame_state *state, uint8_t reg)
{
	int32_t pushed = reg == ARCH_NO_REGISTER ? FRAME_UNKNOWN : state->to_cfa[reg];

	move_stack(state, -8);
	if (reg == ARCH_NO_REGISTER)
		return;
	store(state, reg, ARCH_SP, 0);
	/* What the stack pointer was before is stored. */
	if (reg == ARCH_SP && pushed != FRAME_UNKNOWN) {
		state->slot_at = 0;
		state->slot_to_cfa = pushed;
	}
}

static void pop(struct frame_state *state, uint8_t reg)
{
	if (reg == ARCH_NO_REGISTER) {
		move_stack(state, 8);
	} else if (reg == ARCH_SP) {
		load(state, ARCH_SP, ARCH_SP, 0);
	} else {
		load(state, reg, ARCH_SP, 0);
		move_stack(state, 8);
	}
}

static void set_sum(struct frame_state *state, uint8_t reg, uint8_t base, int64_t value)
{
	if (reg == ARCH_SP && base == ARCH_SP)
		move_stack(state, value);
	else if (reg == ARCH_SP)
		set_stack(state, plus(state->to_cfa[base], -value));
	else
		set_register(state, reg, plus(state->to_cfa[base], -value));
}

static void forget(struct frame_state *state, uint32_t registers)
{
	for (unsigned reg = 0; reg < ARCH_MACHINE_REGISTERS; reg++) {
		if (!(registers >> reg & 1))
			continue;
		if (reg == ARCH_SP)
			set_stack(state, FRAME_UNKNOWN);
		else
			set_register(state, reg, FRAME_UNKNOWN);
	}
}

/* Of one register or two, and of a base that moves. */
static void access(struct frame_state *state, const struct arch_instruction *instruction)
{
	void (*move)(struct frame_state *, uint8_t, uint8_t, int64_t) =
		instruction->effect == ARCH_LOAD ? load : store;

	if (instruction->before)
		set_sum(state, instruction->base, instruction->base, instruction->before);
	if (instruction->reg != ARCH_NO_REGISTER)
		move(state, instruction->reg, instruction->base, instruction->value);
	if (instruction->has_pair && instruction->pair != ARCH_NO_REGISTER)
		move(state, instruction->pair, instruction->base, instruction->value + 8);
	if (instruction->after)
		set_sum(state, instruction->base, instruction->base, instruction->after);
}

void frame_state_apply(struct frame_state *state, const struct arch_instruction *instruction)
{
	switch (instruction->effect) {
	case ARCH_PUSH:
		push(state, instruction->reg);
		break;
	case ARCH_POP:
		pop(state, instruction->reg);
		break;
	case ARCH_ADD:
		set_sum(state, instruction->reg, instruction->reg, instruction->value);
		break;
	case ARCH_MOVE:
		set_sum(state, instruction->reg, instruction->base, 0);
		break;
	case ARCH_ADDRESS:
		set_sum(state, instruction->reg, instruction->base, instruction->value);
		break;
	case ARCH_LOAD:
	case ARCH_STORE:
		access(state, instruction);
		break;
	case ARCH_LEAVE:
		set_stack(state, state->to_cfa[ARCH_FP]);
		pop(state, ARCH_FP);
		break;
	case ARCH_CALL:
		forget(state, ARCH_CALLER_SAVED);
		break;
	default:
		forget(state, instruction->written);
		break;
	}
}

/* The register points to where the caller's was saved: what is called a frame pointer. */
static bool has_frame_pointer(const struct frame_state *state)
{
	return state->fp.kind == FRAME_SAVED_AT_CFA &&
	       state->to_cfa[ARCH_FP] == -state->fp.offset &&
	       (ARCH_HAS_LINK_REGISTER || state->fp.offset == -16);
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
	if (state->to_cfa[ARCH_SP] != FRAME_UNKNOWN && other->to_cfa[ARCH_SP] != FRAME_UNKNOWN &&
		state->to_cfa[ARCH_SP] != other->to_cfa[ARCH_SP] &&
		!(has_frame_pointer(state) && has_frame_pointer(other)))
		return -EINVAL;
	for (size_t i = 0; i < ARCH_MACHINE_REGISTERS; i++) {
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
	changed |= merge_saved(&state->fp, &other->fp);
	changed |= merge_saved(&state->second, &other->second);
	return changed;
}

bool frame_state_can_return(const struct frame_state *state)
{
	return state->to_cfa[ARCH_SP] == ARCH_ENTRY_CFA &&
	       (!ARCH_HAS_LINK_REGISTER || state->second.kind == FRAME_SAVED_SAME);
}

bool frame_state_cannot_return(const struct frame_state *state)
{
	return state->to_cfa[ARCH_SP] != FRAME_UNKNOWN && state->to_cfa[ARCH_SP] != ARCH_ENTRY_CFA;
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
	for (size_t i = 0; i < ARCH_MACHINE_REGISTERS; i++) {
		if (state->to_cfa[i] == FRAME_UNKNOWN)
			continue;
		rule->cfa = UNWIND_CFA_LEAF_REGISTER;
		rule->cfa_addend = arch_dwarf_register((unsigned)i);
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
	rule->cfa = UNWIND_CFA_SP_DEREF;
	rule->cfa_offset = state->slot_at;
	rule->cfa_addend = (int16_t)state->slot_to_cfa;
	return true;
}

/*
 * A frame pointer comes before the stack pointer: callees that pop their own arguments move it
 * unseen. A saved stack pointer comes before registers that only count in the innermost frame.
 */
static bool set_cfa(const struct frame_state *state, struct unwind_rule *rule)
{
	static const struct {
		uint8_t reg;
		enum unwind_cfa cfa;
	} best[] = {{ARCH_SP, UNWIND_CFA_SP}, {ARCH_FP, UNWIND_CFA_FP},
		{ARCH_SECOND, UNWIND_CFA_SECOND}};

	for (size_t i = !ARCH_HAS_LINK_REGISTER && has_frame_pointer(state) ? 1 : 0;
		i < ARRAY_SIZE(best); i++) {
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
	struct unwind_rule rule = {.ra_offset = ARCH_RETURN_OFFSET};

	if (!set_cfa(state, &rule))
		return false;
	rule.fp = saved_kind(&state->fp, &rule.fp_offset);
	if (ARCH_HAS_LINK_REGISTER) {
		if (state->second.kind == FRAME_SAVED_LOST)
			return false;
		rule.ra = saved_kind(&state->second, &rule.ra_offset) == UNWIND_SAVED_AT_CFA
				  ? UNWIND_RA_AT_CFA
				  : UNWIND_RA_SECOND;
	} else {
		rule.second = saved_kind(&state->second, &rule.second_offset);
	}
	*ret_rule = rule;
	return true;
}
