/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the steps of processes took, and what ran in them; which are warm-up, and which are odd.
 *
 * A step is odd if its duration is further from the median than 3.5 standard deviations, as the
 * median of all deviations has them (times 1.4826), and than 5 % of the median. The first steps
 * that are longer by that much are warm-up, half of all at most; the median and the deviations that
 * the others are compared with are then of the rest. Fewer than four ended steps are not judged.
 */
#pragma once

#include "analyses/selection.h"
#include "base/array.h"
#include "model/model.h"

/* The steps of one name in one process. */
struct step_row {
	const char *name;
	uint32_t process;          /* index */
	uint32_t first_step;       /* model->steps.items[first_step] … */
	uint64_t count, cut_count; /* whole steps; those whose end was not seen */
	/* Of the whole ones; 0: there are none. */
	uint64_t total_ns, minimum_ns, maximum_ns, p50_ns, p95_ns;
	/* In all of them, cut ones included. */
	uint64_t samples, device_busy_ns;
	uint64_t warm_up_count, odd_count;
	uint64_t steady_p50_ns; /* without warm-up; 0: there are too few */
};

enum step_mark {
	STEP_NOT_MARKED,
	STEP_WARM_UP,
	STEP_SLOW,
	STEP_FAST,
	STEP_MARK_MAX,
};

/* "slow" …; NULL: it is not marked. */
const char *step_mark_name(enum step_mark mark);

struct step_cost {
	uint64_t samples;        /* of running threads of the process */
	uint64_t device_busy_ns; /* some work ran that was launched in it */
	uint64_t busy_until_ns;  /* while it is counted */
	uint64_t works;          /* launched in it */
	enum step_mark mark;
	double of_steady; /* its duration over the median without warm-up; NaN: not known */
	/* Against the medians of the steady steps: time that the device was busy, and the rest. */
	double more_busy_ns, more_rest_ns;
};

struct step_use {
	ARRAY_OF(struct step_row) rows;   /* by process and name, as model->steps */
	ARRAY_OF(struct step_cost) costs; /* one for each of model->steps */
	ARRAY_OF(uint32_t) slowest;       /* whole steps, longest first: indices of model->steps */
};

/* Of a model that was not weighed; its selected samples, NULL: all. Returns 0 or -ENOMEM. */
int step_use_init(struct step_use *use, const struct model *model, const struct selected *selected);
/* For step_use_init(): marks the steps of a row, which end before `end_of_row`. 0 or -ENOMEM. */
int step_use_mark(
	struct step_use *use, const struct model *model, struct step_row *row, uint32_t end_of_row);
void step_use_done(struct step_use *use);
#define _cleanup_step_use_ _cleanup_(step_use_done)
