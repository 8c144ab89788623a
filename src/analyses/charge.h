/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which frame of a stack a cost outside of the CPU is charged to: the innermost of the user's own
 * code, without one the innermost Python frame, else the innermost frame of user space.
 */
#pragma once

#include "model/model.h"

/* What makes frames one row: a source line, or without lines a function. Hashed as bytes. */
struct charge_key {
	const char *source_file; /* interned: equal names are equal pointers */
	uint32_t line, function;
	uint64_t reason; /* the caller's own part of the key */
};

/* The position in the stack; -1: there is none. */
int64_t charge_position(const struct model *model, const struct model_stack *stack);
/* The frame of stack `index`; MODEL_NONE without a stack, or without such a frame. */
uint32_t charge_frame(const struct model *model, uint32_t index);
struct charge_key charge_key(const struct model *model, uint32_t frame, uint64_t reason);
