/* SPDX-License-Identifier: Apache-2.0 */
/* The power of each class of device work, by regression over the intervals of the sensor. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/energy/regression.h"
#include "analyses/energy/work_state.h"

#define SURE       0.15 /* relative standard error of what is published */
#define COLLINEAR  0.95
#define SPARE_ROWS 8

_Static_assert(COLUMNS <= REGRESSION_COLUMNS, "the regression takes as many columns");

/* Without the regression all times weigh the same. */
static void share_by_time(struct charging *charging)
{
	for (unsigned i = 0; i < charging->column_count; i++) {
		charging->power_w[i] = 1;
		charging->fitted_w[i] = charging->error[i] = NAN;
	}
}

/* The rows that are measured, of the columns that have any time. */
struct table {
	double *x, *y;
	size_t rows, columns;
	uint32_t column_of[COLUMNS]; /* of the table's: that of the charging's */
};

static int make_table(const struct charging *charging, struct table *table)
{
	uint32_t count = charging->domain->interval_count;

	for (uint32_t i = 0; i < charging->column_count; i++) {
		if (charging->all_ns[i] > 0)
			table->column_of[table->columns++] = i;
	}
	table->x = calloc((size_t)count * table->columns + 1, sizeof(*table->x));
	table->y = calloc(count + 1, sizeof(*table->y));
	if (!table->x || !table->y)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (charging->intervals[i].gap)
			continue;
		for (size_t k = 0; k < table->columns; k++)
			table->x[table->rows * table->columns + k] =
				charging->seconds[(size_t)i * charging->column_count +
						  table->column_of[k]];
		table->y[table->rows++] = charging->intervals[i].energy_j;
	}
	return 0;
}

/*
 * Classes whose times go up and down together become one where the regression is not sure of one of
 * them: which, by its first. Times without work stay what they are.
 */
static void merge_columns(const struct table *table, uint32_t others, const double *power,
	const double *error, uint32_t *group_of)
{
	size_t columns = table->columns;

	for (uint32_t i = 0; i < columns; i++)
		group_of[i] = i;
	for (uint32_t i = 0; i < columns; i++) {
		for (uint32_t j = i + 1; j < columns && table->column_of[j] <= others; j++) {
			bool sure = error[i] < SURE * power[i] && error[j] < SURE * power[j];
			uint32_t from = group_of[j], to = group_of[i];

			if (sure || from == to ||
				regression_correlation(table->x, table->rows, columns, i, j) <=
					COLLINEAR)
				continue;
			for (uint32_t k = 0; k < columns; k++) {
				if (group_of[k] == from)
					group_of[k] = to;
			}
		}
	}
}

/* Adds the columns of each group up, in the first; returns how many there are. */
static size_t fold_columns(struct table *table, const uint32_t *group_of, uint32_t *folded_of)
{
	size_t folded = 0;

	for (uint32_t i = 0; i < table->columns; i++)
		folded_of[i] = group_of[i] == i ? (uint32_t)folded++ : folded_of[group_of[i]];
	for (size_t row = 0; row < table->rows; row++) {
		double sums[COLUMNS] = {0};

		for (uint32_t i = 0; i < table->columns; i++)
			sums[folded_of[i]] += table->x[row * table->columns + i];
		memcpy(table->x + row * folded, sums, folded * sizeof(*sums));
	}
	return folded;
}

static int fit(struct charging *charging, struct table *table)
{
	uint32_t group_of[COLUMNS], folded_of[COLUMNS] = {0}, sizes[COLUMNS] = {0};
	double power[COLUMNS], error[COLUMNS];
	size_t folded;
	int r;

	if (table->rows < 2 * table->columns + SPARE_ROWS)
		return 0;
	r = regression_solve(table->x, table->y, table->rows, table->columns, power, error);
	if (r < 0)
		return r;
	merge_columns(table, charging->others, power, error, group_of);
	folded = fold_columns(table, group_of, folded_of);
	r = regression_solve(table->x, table->y, table->rows, folded, power, error);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < table->columns; i++)
		sizes[folded_of[i]]++;
	for (uint32_t i = 0; i < table->columns; i++) {
		uint32_t column = table->column_of[i], of = folded_of[i];

		charging->fitted_w[column] = power[of];
		charging->error[column] = power[of] > 0 ? error[of] / power[of] : INFINITY;
		charging->published[column] = charging->error[column] < SURE;
		charging->merged[column] = sizes[of] - 1;
	}
	return 0;
}

/* What the others took, by their time: where the regression cannot tell them apart. */
static double power_of_others(const struct charging *charging)
{
	double joules = 0, seconds = 0;

	for (uint32_t i = 0; i < charging->domain->interval_count; i++) {
		const double *row = charging->seconds + (size_t)i * charging->column_count;
		double rest = charging->intervals[i].energy_j, time = 0;

		if (charging->intervals[i].gap)
			continue;
		for (unsigned k = 0; k < charging->column_count; k++) {
			if (charging->published[k])
				rest -= charging->fitted_w[k] * row[k];
			else
				time += row[k];
		}
		if (time > 0) {
			joules += rest;
			seconds += time;
		}
	}
	return seconds > 0 ? MAX(joules / seconds, 0.0) : 0;
}

/* What a damaged file says of energy may be beyond all measure. */
static void refuse_nonsense(struct charging *charging)
{
	for (unsigned i = 0; i < charging->column_count; i++) {
		if (charging->power_w[i] < 1e9)
			continue;
		share_by_time(charging);
		memset(charging->published, 0, sizeof(charging->published));
		return;
	}
}

int energy_find_powers(struct charging *charging)
{
	double idle_w = isnan(charging->domain->idle_w) ? 0 : charging->domain->idle_w;
	struct table table = {0};
	bool any = false;
	double others_w;
	int r = 0;

	share_by_time(charging);
	/* Means over a second make the regression sure of powers that are wrong. */
	if (charging->domain->quality != WIRE_ENERGY_AVERAGED && charging->works.count) {
		r = make_table(charging, &table);
		r = r ?: fit(charging, &table);
	}
	free(table.x);
	free(table.y);
	for (unsigned i = 0; i < charging->column_count; i++)
		any |= charging->published[i] && i != charging->between && i != charging->unfed;
	if (r < 0 || !any) {
		memset(charging->published, 0, sizeof(charging->published));
		return r;
	}
	others_w = power_of_others(charging);
	for (unsigned i = 0; i < charging->column_count; i++)
		charging->power_w[i] = MAX(
			(charging->published[i] ? charging->fitted_w[i] : others_w) - idle_w, 0.0);
	refuse_nonsense(charging);
	return 0;
}
