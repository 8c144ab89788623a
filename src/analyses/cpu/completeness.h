/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of the truth the samples show: stacks that stop early and why, samples that were lost,
 * code without a name.
 */
#pragma once

#include "analyses/selection.h"
#include "model/model.h"

struct completeness {
	uint64_t samples; /* selected */
	uint64_t no_stack;
	uint64_t by_stop[WIRE_STOP_MAX]; /* of those with a stack; reasons unknown to us count as
					    READ_FAULT */
	/*
	 * Samples with user-space frames to unwind, and those whose stack reaches the thread's
	 * entry. Kernel threads (WIRE_STOP_NO_USER_STACK) are in neither.
	 */
	uint64_t user_stacks, complete_stacks;
	/* Samples in Python code, those with all their Python frames, and all by reason. */
	uint64_t python_stacks, python_complete;
	uint64_t by_python[WIRE_PYTHON_MAX];
	uint64_t unnamed_leaves;       /* samples whose innermost function has no name */
	uint32_t worst_unnamed_module; /* with most of them; MODEL_NONE: none, or code in no module
					*/
	uint64_t worst_unnamed_samples;
	bool losses_known; /* false: the file has no account (cut off, or foreign) */
	uint64_t lost;     /* samples, of the whole recording: filters do not apply */
	uint64_t recorded; /* samples in the file, whatever the filters say */
};

/* Returns 0 or -ENOMEM. */
int completeness_init(struct completeness *completeness, const struct model *model,
	const struct selected *selected);

/* complete_stacks ÷ user_stacks; NaN when there are none. */
double completeness_share(const struct completeness *completeness);
/* The reason that cut most stacks; WIRE_STOP_COMPLETE when none was. */
enum wire_stop completeness_worst_stop(const struct completeness *completeness);
/* python_complete ÷ python_stacks; NaN when there are none. */
double completeness_python_share(const struct completeness *completeness);
/* The reason that most Python stacks lack frames for; WIRE_PYTHON_FRAMES when none does. */
enum wire_python completeness_worst_python(const struct completeness *completeness);
const char *completeness_python_advice(enum wire_python python);
/* What the reason means and, after a colon, what would fix it where something does. */
const char *completeness_advice(enum wire_stop stop, bool is_bpf);
