/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cycle and an instruction cost on a processor, by least squares over stretches of a rail's
 * readings. Busy processors draw different power; counts say how different, where they explain what
 * the sensor measured better than time alone does. Where they do not, time is all that is known.
 */
#pragma once

#include <stdbool.h>

#include "model/model.h"

/* A stretch of time: what samples have of it by time, and what was counted in them. */
struct sample_fit_row {
	double energy_j, time_s, cycles, instructions;
};

struct sample_fit {
	const char *why_not; /* counts are not used; NULL: they are, and the rest is known */
	double j_per_cycle, j_per_instruction;
	double mean_w; /* of samples that have no counts */
	double error;  /* relative: the larger standard error of the two; 0 without them */
};

/*
 * `counted_share`: of the samples' time, with counts. `is_averaged`: readings are means over more
 * than their time. Returns 0 or -ENOMEM.
 */
int sample_fit_make(struct sample_fit *ret_fit, const struct sample_fit_row *rows, size_t count,
	double counted_share, bool is_averaged);
/* The sample's power in its period, in watts: what its share is by. */
double sample_fit_weight(
	const struct sample_fit *fit, const struct model_sample *sample, uint64_t period_ns);
