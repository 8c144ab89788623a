/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of each allocation of a trace: as the file has it (a snapshot of PyTorch's memory), or
 * the rows that it lies in: Python functions, annotations, operators and calls.
 */
#pragma once

#include "model/trace.h"

struct memory_stacks {
	const struct trace *trace;
	struct intern *texts;  /* what they are put into; 0 is "" */
	uint32_t *parents;     /* by row */
	struct map_u64 given;  /* string of trace_memory.others → text */
	struct map_u64 around; /* row that an allocation lies in → text */
};

/* Returns 0 or -ENOMEM, as the next one. */
int memory_stacks_init(
	struct memory_stacks *stacks, const struct trace *trace, struct intern *texts);
/* Of a row of memory; 0: none is known. */
int memory_stacks_find(struct memory_stacks *stacks, uint32_t row, uint32_t *ret_stack);
void memory_stacks_done(struct memory_stacks *stacks);
