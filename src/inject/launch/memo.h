/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of launches that one thread has seen. A launch has a known stack when its key is the
 * same (stack pointer and Python frames), and each marked word of its stack still has the same
 * value. Marked at first is what looks like a return address, or like a frame pointer saved beside
 * one: more than those of the callers, for functions leave such words behind. Once the collector
 * has unwound the stack the others are unmarked.
 *
 * The same marks are the same chain of callers, but for two things that are measured: a frame of
 * variable size may leave old return addresses where the new ones are not, and code of which the
 * collector does not have yet is not known as such.
 *
 * How a stack that was unwound comes back: on_launch_stack() (collect/pipeline/pipeline.h) →
 * session_on_launch_stack() → launch_records_add_hint() → struct wire_launch_hint (wire/launch.h),
 * in the ring file → launch_memo_learn(), at the thread's next launch.
 *
 * One thread; no allocation. All of it 0 is an empty memo.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/launch.h"

#define LAUNCH_MEMO_HEADS     1024 /* a power of two */
#define LAUNCH_MEMO_WORDS     65536
#define LAUNCH_MEMO_CHAIN     16   /* stacks of one key */
#define LAUNCH_MEMO_MAX_MARKS 512  /* words of one stack */
#define LAUNCH_MEMO_MAX_STACK 8192 /* words that a stack may have */

struct launch_memo {
	uint32_t used;                     /* words */
	uint32_t heads[LAUNCH_MEMO_HEADS]; /* where a chain's first entry is; 0: none */
	/* Of the stack that is being stored: not on our own stack, whose traces others find. */
	uint16_t places[LAUNCH_MEMO_MAX_MARKS];
	bool is_kept[LAUNCH_MEMO_MAX_MARKS];
	uint64_t words[LAUNCH_MEMO_WORDS];
};

/* The words above the stack pointer, and where code lies. */
struct launch_stack_view {
	const uint64_t *words;
	size_t count;
	const struct wire_code_range *ranges; /* sorted */
	uint32_t range_count;
	struct wire_code_range own; /* our code's: what it leaves on the stack is no mark */
};

/* What was stored with this stack, to read and to replace; NULL: not seen before. */
uint64_t *launch_memo_find(
	struct launch_memo *memo, uint64_t key, const struct launch_stack_view *stack);
/* Stores a new one. Where there is no room all are forgotten, this one too. */
void launch_memo_add(struct launch_memo *memo, uint64_t key, const struct launch_stack_view *stack,
	uint64_t same_as);
/*
 * The stack that was stored with `same_as` has these callers (return addresses - 1): other marks
 * are taken off it, and what then is the same stack is forgotten.
 */
void launch_memo_learn(struct launch_memo *memo, uint64_t same_as, const uint64_t *frames,
	size_t frame_count, const struct wire_code_range *own);
void launch_memo_clear(struct launch_memo *memo);
