/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of another tool's trace: at any moment a thread is in the operators, annotations, calls
 * and Python functions that enclose it, outermost first. They become stacks of a model, as those of
 * a recording are, so that flame graphs and tables of functions are made of both in one way.
 *
 * A row lies in one that began before it when most of it does: clocks and rounding let a row end a
 * little after the one around it.
 */
#pragma once

#include "analyses/program/trace_frames.h"
#include "analyses/trace_view.h"

/* A row's frame, below those of the rows around it. */
struct trace_place {
	uint32_t parent; /* index; MODEL_NONE: the thread */
	uint32_t frame, depth;
	uint32_t stack; /* the model's; MODEL_NONE: not made yet */
};

/* While a thread was in a row, and in none that began later. */
struct trace_stretch {
	int64_t start_ns, end_ns; /* as the view has them; end > start */
	uint32_t track;           /* index */
	uint32_t place;           /* index */
};

/*
 * Of one trace after the other: what encloses what is one tree for all of them. Zero-initialise but
 * for frames.model, which gets the stacks, and joins_backward.
 */
struct trace_stacks {
	struct trace_frames frames;
	bool joins_backward; /* rows of the backward pass lie in the module whose operator they are
				the gradient of */
	ARRAY_OF(struct trace_place) places;
	struct map_u64 children; /* parent << 32 | frame → place */
	/* Of the last trace. */
	uint32_t *by_row;                         /* places; MODEL_NONE: the row encloses nothing */
	ARRAY_OF(struct trace_stretch) stretches; /* of one thread after the other, by time */
};

/*
 * Finds the places of the rows of a trace, and with `wants_stretches` the time in each. Returns 0
 * or -ENOMEM.
 */
int trace_stacks_find(
	struct trace_stacks *stacks, const struct trace_view *view, bool wants_stretches);
/* The place of a frame in another place, or in none: MODEL_NONE. Returns 0 or -ENOMEM. */
int trace_stacks_enter(
	struct trace_stacks *stacks, uint32_t parent, uint32_t frame, uint32_t *ret_place);
/* The model's stack of a place; of MODEL_NONE MODEL_NONE. Returns 0 or -ENOMEM. */
int trace_stacks_get(struct trace_stacks *stacks, uint32_t place, uint32_t *ret_stack);
void trace_stacks_done(struct trace_stacks *stacks);
#define _cleanup_trace_stacks_ _cleanup_(trace_stacks_done)
