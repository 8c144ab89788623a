/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of each allocation of a trace: as the file has it (a snapshot of PyTorch's memory; of a
 * recording that of its call, model/trace_capture_memory.c), or the rows that it lies in: Python
 * functions, annotations, operators and calls.
 */
#pragma once

#include "model/trace.h"

/* A name in the one around it: rows of one stack are one frame. */
struct memory_frame {
	uint32_t outer; /* MODEL_NONE: none */
	uint32_t name;
	uint32_t text; /* of the stack down to here; MODEL_NONE: not asked for yet */
};

struct memory_stacks {
	const struct trace *trace;
	struct intern *texts;    /* what they are put into; 0 is "" */
	const uint32_t *parents; /* by row */
	struct map_u64 given;    /* string of trace_memory.others → text */
	uint32_t *around; /* row that an allocation lies in, or a row around that → frame + 1 */
	struct map_u64 inner; /* frame and the name of a row in it → frame */
	ARRAY_OF(struct memory_frame) frames;
	ARRAY_OF(uint32_t) path; /* of the row that is looked for, as far as it is new */
};

/* Returns 0 or -ENOMEM, as the next one. */
int memory_stacks_init(
	struct memory_stacks *stacks, const struct trace *trace, struct intern *texts);
/* Of a row of memory; 0: none is known. `ret_is_given`: the file has it. */
int memory_stacks_find(
	struct memory_stacks *stacks, uint32_t row, uint32_t *ret_stack, bool *ret_is_given);
void memory_stacks_done(struct memory_stacks *stacks);
