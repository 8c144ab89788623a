/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least squares with coefficients that are not negative: rows of times, by class, and the energy
 * that was measured in each, give the classes' powers and how sure they are. After C. L. Lawson and
 * R. J. Hanson, Solving Least Squares Problems, 1974, chapter 23.
 */
#pragma once

#include <stddef.h>

#define REGRESSION_COLUMNS 64

/*
 * Solves `y` ≈ `x` · power; `x` is rows × columns, row by row, and columns at most
 * REGRESSION_COLUMNS. A coefficient's standard error is infinite where it is at its bound of 0, or
 * cannot be distinguished from others. Needs more rows than columns. Returns 0 or -ENOMEM.
 */
int regression_solve(const double *x, const double *y, size_t rows, size_t columns, double *power,
	double *standard_error);

/* Of two columns, about their means; 0 where one does not vary. */
double regression_correlation(
	const double *x, size_t rows, size_t columns, size_t one, size_t other);
