/* SPDX-License-Identifier: Apache-2.0 */
/* Laws behind the figures of several runs: how they grow with the model, and what others would be.
 */
#include "analyses/inference/runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

/* Of the square of a coefficient, against the squares of errors: labels are of mean 0 and deviation
 * 1 then, so that it does not depend on their units. */
#define RIDGE 0.1

/* ---- y = a x^b ---- */

double run_size(const struct run *run)
{
	return isnan(run->labels[RUN_ACTIVE]) ? run->labels[RUN_PARAMETERS]
					      : run->labels[RUN_ACTIVE];
}

struct sums {
	double x, y, xx, xy, yy;
	size_t count;
};

static struct sums sum_logarithms(const struct runs *runs, enum run_figure figure)
{
	struct sums sums = {0};

	array_foreach (&runs->items, run) {
		double x = log(run_size(run)), y = log(run->figures[figure]);

		if (!isfinite(x) || !isfinite(y))
			continue;
		sums.count++;
		sums.x += x;
		sums.y += y;
		sums.xx += x * x;
		sums.xy += x * y;
		sums.yy += y * y;
	}
	return sums;
}

struct run_power_law runs_scaling(const struct runs *runs, enum run_figure figure)
{
	struct run_power_law law = {NAN, NAN, NAN, 0};
	struct sums sums = sum_logarithms(runs, figure);
	double n = (double)sums.count, xx, xy, yy;

	law.count = sums.count;
	if (sums.count < 3)
		return law;
	xx = sums.xx - sums.x * sums.x / n;
	xy = sums.xy - sums.x * sums.y / n;
	yy = sums.yy - sums.y * sums.y / n;
	if (xx < 1e-12) /* all of one size */
		return law;
	law.power = xy / xx;
	law.scale = exp((sums.y - law.power * sums.x) / n);
	law.r_squared = yy < 1e-12 ? NAN : xy * xy / (xx * yy);
	return law;
}

/* ---- ridge regression ---- */

struct table {
	size_t rows, columns;
	double *x; /* logarithms, standardised by column; then those of what is asked for */
	double *y;
	enum run_label labels[RUN_LABEL_MAX]; /* of the columns */
};

/* Solves a x = b in place by Gauss's method: `a` is positive definite, being a sum of squares with
 * a ridge. */
static void solve(double a[RUN_LABEL_MAX][RUN_LABEL_MAX], double *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = i + 1; j < n; j++) {
			double factor = a[j][i] / a[i][i];

			for (size_t k = i; k < n; k++)
				a[j][k] -= factor * a[i][k];
			b[j] -= factor * b[i];
		}
	}
	for (size_t i = n; i-- > 0;) {
		for (size_t j = i + 1; j < n; j++)
			b[i] -= a[i][j] * b[j];
		b[i] /= a[i][i];
	}
}

/* What all rows but `left_out` say of the row `asked`. */
static double predict(const struct table *table, size_t left_out, size_t asked)
{
	double a[RUN_LABEL_MAX][RUN_LABEL_MAX] = {0}, b[RUN_LABEL_MAX] = {0};
	double mean[RUN_LABEL_MAX] = {0}, mean_y = 0, count = 0, result;
	size_t n = table->columns;

	for (size_t row = 0; row < table->rows; row++) {
		if (row == left_out)
			continue;
		for (size_t i = 0; i < n; i++)
			mean[i] += table->x[row * n + i];
		mean_y += table->y[row];
		count++;
	}
	mean_y /= count;
	for (size_t i = 0; i < n; i++)
		mean[i] /= count;
	for (size_t row = 0; row < table->rows; row++) {
		const double *x = &table->x[row * n];

		for (size_t i = 0; row != left_out && i < n; i++) {
			for (size_t j = 0; j < n; j++)
				a[i][j] += (x[i] - mean[i]) * (x[j] - mean[j]);
			b[i] += (x[i] - mean[i]) * (table->y[row] - mean_y);
		}
	}
	for (size_t i = 0; i < n; i++)
		a[i][i] += RIDGE;
	solve(a, b, n);
	result = mean_y;
	for (size_t i = 0; i < n; i++)
		result += b[i] * (table->x[asked * n + i] - mean[i]);
	return result;
}

/* Do all runs say the label, and not all the same? */
static bool is_useful(const struct runs *runs, enum run_label label)
{
	double first = NAN;
	bool differs = false;

	array_foreach (&runs->items, run) {
		if (!(run->labels[label] > 0))
			return false;
		first = isnan(first) ? run->labels[label] : first;
		differs |= run->labels[label] != first;
	}
	return differs;
}

static void standardise(struct table *table, size_t column)
{
	double mean = 0, square = 0, deviation;
	size_t n = table->columns;

	for (size_t row = 0; row < table->rows; row++)
		mean += table->x[row * n + column] / (double)table->rows;
	for (size_t row = 0; row < table->rows; row++)
		square += pow(table->x[row * n + column] - mean, 2) / (double)table->rows;
	deviation = sqrt(square);
	for (size_t row = 0; row <= table->rows; row++)
		table->x[row * n + column] = (table->x[row * n + column] - mean) / deviation;
}

static int choose_labels(struct table *table, const struct runs *runs,
	const double labels[RUN_LABEL_MAX], struct errmsg *err)
{
	for (int i = 0; i < RUN_LABEL_MAX; i++) {
		bool useful = is_useful(runs, (enum run_label)i);

		if (!isnan(labels[i]) && !useful)
			return errmsg_set(err, -EINVAL,
				"nothing can be predicted from %s: some runs lack it, or all have "
				"the same value",
				run_label_name((enum run_label)i));
		if (!isnan(labels[i]))
			table->labels[table->columns++] = (enum run_label)i;
	}
	if (!table->columns)
		return errmsg_set(err, -EINVAL, "nothing was given to predict from");
	return 0;
}

static int fill(struct table *table, const struct runs *runs, enum run_figure figure,
	const double labels[RUN_LABEL_MAX])
{
	size_t n = MAX(table->columns, (size_t)1);

	table->rows = runs->items.count;
	table->x = calloc((table->rows + 1) * n, sizeof(*table->x));
	table->y = calloc(table->rows, sizeof(*table->y));
	if (!table->x || !table->y)
		return -ENOMEM;
	for (size_t column = 0; column < n; column++) {
		enum run_label label = table->labels[column];

		for (size_t row = 0; row < table->rows; row++)
			table->x[row * n + column] = log(runs->items.items[row].labels[label]);
		table->x[table->rows * n + column] = log(labels[label]);
		standardise(table, column);
	}
	for (size_t row = 0; row < table->rows; row++)
		table->y[row] = log(runs->items.items[row].figures[figure]);
	return 0;
}

/* The quantile of Student's distribution for 95 %, by degrees of freedom. */
static double student(size_t freedom)
{
	static const double quantiles[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
		2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131};

	if (freedom < 1)
		return INFINITY;
	return quantiles[MIN(freedom, ARRAY_SIZE(quantiles)) - 1];
}

/* Each run is predicted from the others. */
static void judge(const struct table *table, struct run_prediction *prediction)
{
	double mean = 0, errors = 0, spread = 0, absolute = 0, deviation;
	double value = predict(table, SIZE_MAX, table->rows);

	for (size_t row = 0; row < table->rows; row++)
		mean += table->y[row] / (double)table->rows;
	for (size_t row = 0; row < table->rows; row++) {
		double guess = predict(table, row, row);

		errors += pow(table->y[row] - guess, 2);
		spread += pow(table->y[row] - mean, 2);
		absolute += fabs(exp(table->y[row]) - exp(guess)) / (double)table->rows;
	}
	deviation = student(table->rows - 1) * sqrt(errors / (double)table->rows);
	prediction->value = exp(value);
	prediction->low = exp(value - deviation);
	prediction->high = exp(value + deviation);
	prediction->mean_error = absolute;
	prediction->r_squared = spread < 1e-12 ? NAN : 1 - errors / spread;
	prediction->count = table->rows;
}

static bool lies_outside(const struct runs *runs, enum run_label label, double value)
{
	double lowest = INFINITY, highest = 0;

	array_foreach (&runs->items, run) {
		lowest = fmin(lowest, run->labels[label]);
		highest = fmax(highest, run->labels[label]);
	}
	return value < lowest || value > highest;
}

int runs_predict(const struct runs *runs, enum run_figure figure,
	const double labels[RUN_LABEL_MAX], struct run_prediction *ret_prediction,
	struct errmsg *err)
{
	struct run_prediction prediction = {0};
	struct table table = {0};
	int r;

	if (runs->items.count < RUN_PREDICTION_MIN)
		return errmsg_set(err, -EINVAL,
			"a prediction needs at least %d runs, and there are %zu: give more "
			"captures",
			RUN_PREDICTION_MIN, runs->items.count);
	array_foreach (&runs->items, run) {
		if (!(run->figures[figure] > 0))
			return errmsg_set(err, -EINVAL,
				"%s cannot be predicted: it is not known for %s",
				run_figure_name(figure), run->capture);
	}
	r = choose_labels(&table, runs, labels, err);
	if (r < 0)
		return r;
	r = fill(&table, runs, figure, labels);
	if (r == 0) {
		judge(&table, &prediction);
		for (size_t i = 0; i < table.columns; i++) {
			prediction.labels |= 1U << table.labels[i];
			prediction.is_extrapolation |=
				lies_outside(runs, table.labels[i], labels[table.labels[i]]);
		}
		*ret_prediction = prediction;
	} else {
		errmsg_set(err, r, "memory ran out while predicting");
	}
	free(table.x);
	free(table.y);
	return r;
}

/* ---- as a person asks for it ---- */

static int parse_label(const char **text, double labels[RUN_LABEL_MAX], struct errmsg *err)
{
	const char *equals = strchr(*text, '=');
	enum run_label label = RUN_LABEL_MAX;
	char *end = NULL;
	double value = 0;

	if (equals) {
		label = run_label_from_string(*text, (size_t)(equals - *text));
		value = strtod(equals + 1, &end);
	}
	if (label == RUN_LABEL_MAX || end == equals + 1 || !(value > 0 && isfinite(value)) ||
		(*end && *end != ','))
		return errmsg_set(err, -EINVAL,
			"--predict '%.64s' says no label: give batch_size, context_length, "
			"parameters, active_parameters or experts with a number, such as "
			"batch_size=16,context_length=2048",
			*text);
	labels[label] = value;
	*text = *end ? end + 1 : end;
	return 0;
}

int runs_predict_as_asked(const struct runs *runs, const char *text, enum run_figure *ret_figure,
	struct run_prediction *ret_prediction, struct errmsg *err)
{
	enum run_figure figure = RUN_JOULES_PER_TOKEN;
	double labels[RUN_LABEL_MAX];
	int r = 0;

	for (int i = 0; i < RUN_LABEL_MAX; i++)
		labels[i] = NAN;
	do
		r = parse_label(&text, labels, err);
	while (r == 0 && *text);
	array_foreach (&runs->items, run) {
		if (isnan(run->figures[RUN_JOULES_PER_TOKEN]))
			figure = RUN_TPOT_NS;
	}
	if (r == 0)
		r = runs_predict(runs, figure, labels, ret_prediction, err);
	if (r == 0)
		*ret_figure = figure;
	return r;
}
