/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a function's frame at one of its instructions, when only the instructions tell.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/code.h"
#include "unwind/table.h"

#define FRAME_UNKNOWN INT32_MIN

enum frame_saved_kind {
	FRAME_SAVED_SAME,   /* the register still is the caller's */
	FRAME_SAVED_AT_CFA, /* saved at CFA + offset */
	FRAME_SAVED_LOST,
};

struct frame_saved {
	enum frame_saved_kind kind;
	int32_t offset;
};

struct frame_state {
	/* By machine register: CFA = register + to_cfa, or FRAME_UNKNOWN. */
	int32_t to_cfa[ARCH_MACHINE_REGISTERS];
	/* CFA = *(stack pointer + slot_at) + slot_to_cfa, when slot_at is known. */
	int32_t slot_at, slot_to_cfa;
	struct frame_saved fp, second;
};

/* At a function's first instruction. */
struct frame_state frame_state_at_entry(void);
/* Changes `state` by what the instruction does. */
void frame_state_apply(struct frame_state *state, const struct arch_instruction *instruction);
/* After a call of a function that may have popped arguments: a frame pointer is all that still
 * tells the depth. */
void frame_state_after_popping_call(struct frame_state *state);
/*
 * Keeps in `state` what both know. Returns 1 when that took something from `state`, 0 when not, and
 * -EINVAL when they contradict each other: two depths of the stack at one instruction.
 */
int frame_state_merge(struct frame_state *state, const struct frame_state *other);
/* True when the stack pointer is known to stand at the return address, or known not to. */
bool frame_state_can_return(const struct frame_state *state);
bool frame_state_cannot_return(const struct frame_state *state);
/* The rule that holds here; false when the CFA is not known. */
bool frame_state_to_rule(const struct frame_state *state, struct unwind_rule *ret_rule);
