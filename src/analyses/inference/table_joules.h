/* SPDX-License-Identifier: Apache-2.0 */
/* The energy of rows of the tables of steps and ranges. */
#pragma once

#include "analyses/inference/joules.h"
#include "analyses/program/range_use.h"
#include "analyses/program/step_use.h"

/* Of the whole steps of a row, by all threads of the process. Returns 0 or -ENOMEM. */
int joules_of_steps(const struct span_energy *energy, const struct model *model,
	const struct step_row *row, struct joules *ret_joules);
/* Of one step. */
struct joules joules_of_step(const struct span_energy *energy, const struct model_step *step);

/* Ranges by name, domain and kind: those of one row lie together. */
struct range_index {
	ARRAY_OF(uint32_t) ranges;
};

/* Returns 0 or -ENOMEM. */
int range_index_init(struct range_index *index, const struct model *model);
void range_index_done(struct range_index *index);
#define _cleanup_range_index_ _cleanup_(range_index_done)

/* Of the ranges of a row, by their thread, or by all of the process. Returns 0 or -ENOMEM. */
int joules_of_ranges(const struct span_energy *energy, const struct model *model,
	const struct range_index *index, const struct range_row *row, struct joules *ret_joules);
