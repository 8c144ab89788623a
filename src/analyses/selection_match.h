/* SPDX-License-Identifier: Apache-2.0 */
/* What of a model each filter fits: for selection.c and selection_narrow.c alone. */
#pragma once

#include "analyses/program/range_finder.h"
#include "analyses/selection.h"

/* A number to compare with, or a pattern. */
struct matcher {
	bool any, is_number;
	uint64_t number;
	regex_t pattern;
	bool has_pattern;
};

bool matcher_fits(const struct matcher *matcher, uint64_t number, const char *text);

/* Time of a step, or of several. */
struct selection_span {
	uint64_t start_ns, end_ns;
	uint32_t process; /* index; MODEL_NONE: of any */
};

struct selection_match {
	uint64_t start_ns, end_ns; /* inclusive */
	bool *processes, *threads; /* by index; a thread fits with its process */
	struct matcher by_symbol;
	bool *stacks;   /* by index: a function in it fits; NULL: every stack does */
	bool *ranges;   /* by index: the name fits; NULL: no range was asked for */
	bool has_steps; /* steps were asked for: of each process those in `spans` */
	struct selection_steps steps;
	ARRAY_OF(struct selection_span) spans; /* by process, then by time; none overlap */
	bool any_thread;                       /* what has no thread fits, too */
};

int selection_match_init(struct selection_match *match, const struct selection *selection,
	const struct model *model, struct errmsg *err);
void selection_match_done(struct selection_match *match);
#define _cleanup_selection_match_ _cleanup_(selection_match_done)

static inline bool selection_match_has_step(
	const struct selection_match *match, const struct model_step *step)
{
	return step->number >= match->steps.first && step->number <= match->steps.last;
}

/*
 * Does the moment lie in a step that was asked for? Of a process without such steps: in one of
 * others. True where none was asked for.
 */
bool selection_match_in_step(
	const struct selection_match *match, uint32_t process, uint64_t time_ns);

/*
 * One bool by index of each moment: it lies in a range that fits. Sorts the moments. Returns 0 or
 * -ENOMEM.
 */
int selection_match_moments(const struct selection_match *match, const struct model *model,
	struct range_moment *moments, size_t count, bool *fits);
