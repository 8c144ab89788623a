/* SPDX-License-Identifier: Apache-2.0 */
/* How long the steps of processes took, and what ran in them. */
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
};

struct step_cost {
	uint64_t samples;        /* of running threads of the process */
	uint64_t device_busy_ns; /* some work ran that was launched in it */
	uint64_t busy_until_ns;  /* while it is counted */
};

struct step_use {
	ARRAY_OF(struct step_row) rows;   /* by process and name, as model->steps */
	ARRAY_OF(struct step_cost) costs; /* one for each of model->steps */
	ARRAY_OF(uint32_t) slowest;       /* whole steps, longest first: indices of model->steps */
};

/* Of a model that was not weighed; its selected samples, NULL: all. Returns 0 or -ENOMEM. */
int step_use_init(struct step_use *use, const struct model *model, const struct selected *selected);
void step_use_done(struct step_use *use);
#define _cleanup_step_use_ _cleanup_(step_use_done)
