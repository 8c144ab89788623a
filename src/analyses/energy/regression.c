/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/energy/regression.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* A column of which less than this is its own, relative, is made up of others. */
#define DEPENDENT 1e-10

/* The normal equations, of columns of length 1. */
struct problem {
	size_t columns;
	double gram[REGRESSION_COLUMNS * REGRESSION_COLUMNS];
	double target[REGRESSION_COLUMNS];
	double norm[REGRESSION_COLUMNS];
	double power[REGRESSION_COLUMNS]; /* of columns of length 1 */
	bool is_free[REGRESSION_COLUMNS]; /* not at its bound */
	bool is_out[REGRESSION_COLUMNS];  /* all zero, or made up of others */
};

/* The free columns: their equations in triangular form. */
struct factor {
	size_t count;
	size_t columns[REGRESSION_COLUMNS];
	double lower[REGRESSION_COLUMNS * REGRESSION_COLUMNS];
};

static double gram_of(const struct problem *problem, size_t i, size_t j)
{
	return problem->gram[i * REGRESSION_COLUMNS + j];
}

static void make_equations(struct problem *problem, const double *x, const double *y, size_t rows)
{
	size_t columns = problem->columns;

	for (size_t k = 0; k < rows; k++) {
		const double *row = x + k * columns;

		for (size_t i = 0; i < columns; i++) {
			if (row[i] == 0)
				continue;
			problem->target[i] += row[i] * y[k];
			for (size_t j = 0; j <= i; j++)
				problem->gram[i * REGRESSION_COLUMNS + j] += row[i] * row[j];
		}
	}
	for (size_t i = 0; i < columns; i++) {
		problem->norm[i] = sqrt(gram_of(problem, i, i));
		problem->is_out[i] = problem->norm[i] == 0;
		if (problem->is_out[i])
			problem->norm[i] = 1;
	}
	for (size_t i = 0; i < columns; i++) {
		problem->target[i] /= problem->norm[i];
		for (size_t j = 0; j <= i; j++) {
			double value = gram_of(problem, i, j) / problem->norm[i] / problem->norm[j];

			problem->gram[i * REGRESSION_COLUMNS + j] = value;
			problem->gram[j * REGRESSION_COLUMNS + i] = value;
		}
	}
}

/* Cholesky. A column that others make up is left out for good. */
static void factorise(struct problem *problem, struct factor *factor)
{
	factor->count = 0;
	for (size_t column = 0; column < problem->columns; column++) {
		size_t n = factor->count;
		double *row = factor->lower + n * REGRESSION_COLUMNS, rest;

		if (!problem->is_free[column])
			continue;
		rest = gram_of(problem, column, column);
		for (size_t j = 0; j < n; j++) {
			const double *other = factor->lower + j * REGRESSION_COLUMNS;
			double sum = gram_of(problem, column, factor->columns[j]);

			for (size_t k = 0; k < j; k++)
				sum -= row[k] * other[k];
			row[j] = sum / other[j];
			rest -= row[j] * row[j];
		}
		if (rest < DEPENDENT) {
			problem->is_free[column] = false;
			problem->is_out[column] = true;
			problem->power[column] = 0;
			continue;
		}
		row[n] = sqrt(rest);
		factor->columns[n] = column;
		factor->count++;
	}
}

static void solve_factor(const struct factor *factor, const double *right, double *solution)
{
	for (size_t i = 0; i < factor->count; i++) {
		const double *row = factor->lower + i * REGRESSION_COLUMNS;
		double sum = right[i];

		for (size_t k = 0; k < i; k++)
			sum -= row[k] * solution[k];
		solution[i] = sum / row[i];
	}
	for (size_t i = factor->count; i-- > 0;) {
		double sum = solution[i];

		for (size_t k = i + 1; k < factor->count; k++)
			sum -= factor->lower[k * REGRESSION_COLUMNS + i] * solution[k];
		solution[i] = sum / factor->lower[i * REGRESSION_COLUMNS + i];
	}
}

/*
 * Moves to the best powers of the free columns, or as far as none becomes negative: one that does
 * is bound. True when it got there.
 */
static bool move(struct problem *problem, struct factor *factor)
{
	double right[REGRESSION_COLUMNS] = {0}, best[REGRESSION_COLUMNS] = {0}, step = 1;

	factorise(problem, factor);
	for (size_t i = 0; i < factor->count; i++)
		right[i] = problem->target[factor->columns[i]];
	solve_factor(factor, right, best);
	for (size_t i = 0; i < factor->count; i++) {
		double now = problem->power[factor->columns[i]];

		if (best[i] < 0)
			step = MIN(step, now / (now - best[i]));
	}
	for (size_t i = 0; i < factor->count; i++) {
		size_t column = factor->columns[i];
		double *power = &problem->power[column];

		*power += step * (best[i] - *power);
		if (step < 1 && best[i] < 0 && *power <= 1e-12 * (fabs(best[i]) + 1)) {
			*power = 0;
			problem->is_free[column] = false;
		}
	}
	return step >= 1;
}

/* The bound column that would lower the error most; SIZE_MAX: none would. */
static size_t find_ascent(const struct problem *problem)
{
	size_t found = SIZE_MAX;
	double most = 0, scale = 0;

	for (size_t i = 0; i < problem->columns; i++)
		scale = MAX(scale, fabs(problem->target[i]));
	for (size_t i = 0; i < problem->columns; i++) {
		double slope = problem->target[i];

		if (problem->is_free[i] || problem->is_out[i])
			continue;
		for (size_t j = 0; j < problem->columns; j++)
			slope -= gram_of(problem, i, j) * problem->power[j];
		if (slope > most && slope > 1e-9 * scale) {
			most = slope;
			found = i;
		}
	}
	return found;
}

static double residual_variance(const struct problem *problem, const double *x, const double *y,
	size_t rows, size_t free_count)
{
	double sum = 0;

	for (size_t k = 0; k < rows; k++) {
		double rest = y[k];

		for (size_t i = 0; i < problem->columns; i++)
			rest -= x[k * problem->columns + i] * problem->power[i] / problem->norm[i];
		sum += rest * rest;
	}
	return rows > free_count ? sum / (double)(rows - free_count) : INFINITY;
}

static void find_errors(
	const struct problem *problem, const struct factor *factor, double variance, double *errors)
{
	double right[REGRESSION_COLUMNS], solution[REGRESSION_COLUMNS] = {0};

	for (size_t i = 0; i < problem->columns; i++)
		errors[i] = INFINITY;
	for (size_t i = 0; i < factor->count; i++) {
		size_t column = factor->columns[i];

		memset(right, 0, sizeof(right));
		right[i] = 1;
		solve_factor(factor, right, solution);
		errors[column] = sqrt(variance * MAX(solution[i], 0.0)) / problem->norm[column];
	}
}

int regression_solve(const double *x, const double *y, size_t rows, size_t columns, double *power,
	double *standard_error)
{
	struct problem *problem = calloc(1, sizeof(*problem));
	struct factor *factor = calloc(1, sizeof(*factor));
	int r = problem && factor ? 0 : -ENOMEM;

	assert(columns <= REGRESSION_COLUMNS);
	if (r == 0) {
		problem->columns = columns;
		make_equations(problem, x, y, rows);
		for (size_t round = 0; round < 3 * columns + 3; round++) {
			size_t next = find_ascent(problem);

			if (next == SIZE_MAX)
				break;
			problem->is_free[next] = true;
			for (size_t i = 0; i <= columns && !move(problem, factor); i++)
				;
		}
		factorise(problem, factor);
		find_errors(problem, factor, residual_variance(problem, x, y, rows, factor->count),
			standard_error);
		for (size_t i = 0; i < columns; i++)
			power[i] = problem->power[i] / problem->norm[i];
	}
	free(problem);
	free(factor);
	return r;
}

double regression_correlation(
	const double *x, size_t rows, size_t columns, size_t one, size_t other)
{
	double mean_one = 0, mean_other = 0, both = 0, of_one = 0, of_other = 0;

	for (size_t k = 0; k < rows; k++) {
		mean_one += x[k * columns + one] / (double)rows;
		mean_other += x[k * columns + other] / (double)rows;
	}
	for (size_t k = 0; k < rows; k++) {
		double a = x[k * columns + one] - mean_one;
		double b = x[k * columns + other] - mean_other;

		both += a * b;
		of_one += a * a;
		of_other += b * b;
	}
	return of_one > 0 && of_other > 0 ? both / sqrt(of_one * of_other) : 0;
}
