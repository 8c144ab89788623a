/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/energy/sample_fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyses/energy/regression.h"
#include "base/macros.h"

#define SURE         0.15 /* relative standard error, as of the powers of device work */
#define LEAST_ROWS   20
#define LEAST_COUNTS 0.95 /* of the samples' time */
/* Of one more coefficient, at a level of 0.1 %: F(1, n) is 10.8 for many rows, 15 for 20. */
#define LEAST_F 15.0
#define WORST_J 1e-3 /* a cycle: a damaged file's */

/* Cycles and instructions are counted in billions: columns of a like size. */
#define SCALE 1e-9

enum { CYCLES, INSTRUCTIONS, COLUMNS };

static double unexplained_by_time(const struct sample_fit_row *rows, size_t count)
{
	double products = 0, squares = 0, rest = 0;

	for (size_t i = 0; i < count; i++) {
		products += rows[i].energy_j * rows[i].time_s;
		squares += rows[i].time_s * rows[i].time_s;
	}
	for (size_t i = 0; i < count; i++) {
		double error = rows[i].energy_j - rows[i].time_s * products / squares;

		rest += error * error;
	}
	return rest;
}

static double unexplained(const double *x, const double *y, size_t count, const double *costs)
{
	double rest = 0;

	for (size_t i = 0; i < count; i++) {
		double error = y[i] - x[i * COLUMNS + CYCLES] * costs[CYCLES] -
			       x[i * COLUMNS + INSTRUCTIONS] * costs[INSTRUCTIONS];

		rest += error * error;
	}
	return rest;
}

/* The larger relative error of those that are not 0; infinite where none is. */
static double worst_error(const double *costs, const double *errors)
{
	double worst = -1;

	for (unsigned i = 0; i < COLUMNS; i++) {
		if (costs[i] > 0)
			worst = MAX(worst, errors[i] / costs[i]);
	}
	return worst < 0 || !isfinite(worst) ? INFINITY : worst;
}

static double mean_power(const struct sample_fit_row *rows, size_t count)
{
	double joules = 0, seconds = 0;

	for (size_t i = 0; i < count; i++) {
		joules += rows[i].energy_j;
		seconds += rows[i].time_s;
	}
	return joules / seconds;
}

static const char *judge(
	const struct sample_fit *fit, const struct sample_fit_row *rows, size_t count, double rest)
{
	double by_time = unexplained_by_time(rows, count);

	if (!(fit->error < SURE) || !(fit->j_per_cycle < WORST_J) ||
		!(fit->j_per_instruction < WORST_J))
		return "readings do not tell what a cycle and what an instruction costs";
	if (!((by_time - rest) * (double)(count - COLUMNS) > LEAST_F * rest))
		return "counts of cycles and instructions explain the readings no better than time";
	return NULL;
}

static int solve(struct sample_fit *fit, const struct sample_fit_row *rows, size_t count)
{
	_cleanup_free_ double *x = calloc(count * COLUMNS, sizeof(*x));
	_cleanup_free_ double *y = calloc(count, sizeof(*y));
	double costs[COLUMNS], errors[COLUMNS];
	int r;

	if (!x || !y)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		x[i * COLUMNS + CYCLES] = rows[i].cycles * SCALE;
		x[i * COLUMNS + INSTRUCTIONS] = rows[i].instructions * SCALE;
		y[i] = rows[i].energy_j;
	}
	r = regression_solve(x, y, count, COLUMNS, costs, errors);
	if (r < 0)
		return r;
	fit->j_per_cycle = costs[CYCLES] * SCALE;
	fit->j_per_instruction = costs[INSTRUCTIONS] * SCALE;
	fit->mean_w = mean_power(rows, count);
	fit->error = worst_error(costs, errors);
	fit->why_not = judge(fit, rows, count, unexplained(x, y, count, costs));
	return 0;
}

int sample_fit_make(struct sample_fit *ret_fit, const struct sample_fit_row *rows, size_t count,
	double counted_share, bool is_averaged)
{
	struct sample_fit fit = {0};
	int r = 0;

	if (counted_share < LEAST_COUNTS)
		fit.why_not = "samples have no counts of cycles and instructions";
	else if (is_averaged)
		fit.why_not = "the sensor's readings are means over more than their time";
	else if (count < LEAST_ROWS)
		fit.why_not = "the recording is too short to learn what a cycle costs";
	else
		r = solve(&fit, rows, count);
	if (r < 0)
		return r;
	*ret_fit = fit.why_not ? (struct sample_fit){.why_not = fit.why_not} : fit;
	return 0;
}

double sample_fit_weight(
	const struct sample_fit *fit, const struct model_sample *sample, uint64_t period_ns)
{
	if (!sample->cycles)
		return fit->mean_w;
	return (fit->j_per_cycle * sample->cycles + fit->j_per_instruction * sample->instructions) /
	       ((double)period_ns / 1e9);
}
