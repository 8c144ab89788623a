/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sure the energy of a row is: of a function, a line, a kernel, a frame of a flame graph.
 *
 * One standard uncertainty, as everywhere: about two of three true values lie within ±, 19 of 20
 * within twice that. Four parts, which are added as squares:
 *
 * - the sensor's: relative error × joules. Sensors of one side, host or device, err alike.
 * - of what samples share: that of a ratio of two sums over clusters drawn at random (Cochran,
 *   Sampling Techniques, 3rd ed., 9A.1), a cluster being the samples of one sampling period. With R
 *   joules of the row and A of all in a period, and p = ΣR / ΣA,
 *       Σ(R − pA)² = ΣR² − 2p ΣRA + p² ΣA²
 *   With one sample a period it is the binomial's p (1 − p) n. What was left to programs without
 *   samples counts as samples of the mean size. Periods follow each other, so that a program whose
 *   parts last longer than one is known better than this says; one in step with the clock is not.
 * - of work that the regression split: standard error × joules. The same of samples that were split
 *   by counts, without the row's share of all samples: of all together the split is no error.
 * - what is in doubt: parts that are too short, or were split by time, as long as they are at most
 *   a twentieth of the row. If they are more, nothing is known.
 *
 * That busy processors draw different power is in none of them where samples share by time:
 * docs/energy.md.
 */
#pragma once

#include <math.h>

#include "analyses/energy/use.h"
#include "analyses/selection.h"

/* Why an uncertainty is not known. */
enum energy_doubt {
	ENERGY_DOUBT_NONE,
	ENERGY_DOUBT_SHORT,  /* less than ten periods of the sensor, or ten samples */
	ENERGY_DOUBT_SHARED, /* split by time between classes of device work */
	ENERGY_DOUBT_SENSOR, /* the sensor's error is not known */
	ENERGY_DOUBT_MAX
};

/* NULL, "shorter_than_sensor", "time_share", "sensor_error_not_known" */
const char *energy_doubt_name(enum energy_doubt doubt);

struct energy_uncertainty {
	double energy_j; /* NaN: not known */
	enum energy_doubt doubt;
};

#define ENERGY_NO_UNCERTAINTY ((struct energy_uncertainty){NAN, ENERGY_DOUBT_NONE})

/* Of a row, in joules. Zero-initialise. */
struct energy_sums {
	double all_j;
	double sampled_j, unsampled_j, squares_j2, products_j2; /* products: ΣRA */
	double split_j;                        /* of sampled_j: the error of the counts' costs */
	uint64_t samples, period;              /* period: the last, and 1 */
	double in_period_j, all_in_period_j;   /* of that */
	double sensor_j[2];                    /* host, device: their errors */
	double unknown_j;                      /* whose sensor's error is not known */
	double regressed_j, power_j, shared_j; /* power_j: their error */
	uint64_t device_ns;
};

/* Energy of one sample, or of what it stands for. */
struct energy_piece {
	double energy_j;
	uint64_t duration_ns; /* of device work */
	uint64_t period;      /* its sampling period, and 1 */
	double all_j;         /* that was sampled in that period */
	uint16_t error;       /* index in energy_errors */
};

/* Goes through samples in their order, for the sums of their periods. Zero-initialise. */
struct energy_periods {
	uint64_t period;
	double all_j;
};

/* The piece of the model's sample of this index: weighed, or as energy_use_init() left it. */
struct energy_piece energy_piece_of(
	struct energy_periods *periods, const struct model *model, size_t index);
/* Pieces come in order of time. */
void energy_sums_add(
	struct energy_sums *sums, const struct model *model, const struct energy_piece *piece);
/* The rows become one, as if they never ran in one period. */
void energy_sums_join(struct energy_sums *sums, const struct energy_sums *other);
struct energy_uncertainty energy_uncertainty_of(
	const struct model *model, const struct energy_sums *sums);

/* By energy_use_init(), when all is charged. */
void energy_pool_fill(struct model *model, const struct energy_use *use);

/* Of each key, as frame_counts_init() counts them. */
struct energy_key_sums {
	struct energy_sums *self, *total;
};

/*
 * Of frames: `keys` has one for each of the model's frames. Of samples: for each of them, and
 * `total` is NULL. The last of the arrays has what has no key. Return 0 or -ENOMEM.
 */
int energy_sums_of_frames(struct energy_key_sums *ret_sums, const struct model *model,
	const struct selected *selected, const uint32_t *keys, size_t key_count);
int energy_sums_of_samples(struct energy_key_sums *ret_sums, const struct model *model,
	const struct selected *selected, const uint32_t *keys, size_t key_count);
void energy_key_sums_done(struct energy_key_sums *sums);
#define _cleanup_energy_key_sums_ _cleanup_(energy_key_sums_done)
