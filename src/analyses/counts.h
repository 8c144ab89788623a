/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting samples: the loops that every table shares. Stacks are walked once each, whatever number
 * of samples they have.
 */
#pragma once

#include "analyses/selection.h"
#include "model/model.h"

/* Selected samples of each stack. */
struct stack_counts {
	uint64_t *by_stack; /* model->stacks.count of them */
	uint64_t no_stack;  /* samples without one, or with an empty one */
	uint64_t samples;   /* all of them */
};

/* Returns 0 or -ENOMEM. */
int stack_counts_init(
	struct stack_counts *counts, const struct model *model, const struct selected *selected);
void stack_counts_done(struct stack_counts *counts);
#define _cleanup_stack_counts_ _cleanup_(stack_counts_done)

/* Per key: samples whose innermost frame has the key, and samples with the key anywhere in their
 * stack. */
struct frame_counts {
	uint64_t *self, *total; /* by key */
	size_t key_count;
};

/*
 * `frame_keys` has the key, below `key_count`, of each of the model's frames. A key counts once a
 * sample, however often it is in the stack. Returns 0 or -ENOMEM.
 */
int frame_counts_init(struct frame_counts *counts, const struct model *model,
	const struct stack_counts *stacks, const uint32_t *frame_keys, size_t key_count);
void frame_counts_done(struct frame_counts *counts);
#define _cleanup_frame_counts_ _cleanup_(frame_counts_done)
