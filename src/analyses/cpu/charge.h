/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which frame of a stack a cost outside of the CPU is charged to: the innermost of the user's own
 * code (model_own_frame()), without one the innermost Python frame, else the innermost native one:
 * of a library, then of a framework, then of the C library, a loader or a driver. Never one of
 * sonde's, or the kernel's.
 */
#pragma once

#include "model/model.h"

/* What makes frames one row: a source line, or without lines a function. Hashed as bytes. */
struct charge_key {
	const char *source_file; /* interned: equal names are equal pointers */
	uint32_t line, function;
	uint64_t reason; /* the caller's own part of the key */
};

/* The frame of stack `index`; MODEL_NONE without a stack, or without such a frame. */
uint32_t charge_frame(const struct model *model, uint32_t index);
/* Of frame `index`, or of MODEL_NONE. */
struct charge_key charge_key(const struct model *model, uint32_t index, uint64_t reason);
