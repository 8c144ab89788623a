/* SPDX-License-Identifier: Apache-2.0 */
#include "store/groups.h"

#include <string.h>

#include "analyses/statistics.h"

const struct store_figure store_figures[STORE_FIGURE_COUNT] = {
	{STORE_RUN_TOKENS_PER_S, true},
	{STORE_RUN_TTFT_P50},
	{STORE_RUN_TPOT_P50},
	{STORE_RUN_STEP_P50},
	{STORE_RUN_DURATION},
	{STORE_RUN_CPU_TIME},
	{STORE_RUN_ENERGY_J},
	{STORE_RUN_JOULES_PER_TOKEN},
	{STORE_RUN_AVERAGE_W},
};

const char *store_figure_name(const struct store_figure *figure)
{
	return store_tables[STORE_RUNS].columns[figure->column].name;
}

static int add_row(
	struct run_groups *groups, const struct run_row *row, run_equal_function *is_equal)
{
	struct run_group fresh = {0};
	int r;

	array_foreach (&groups->items, group) {
		if (is_equal(group->rows.items[0], row))
			return array_append(&group->rows, row);
	}
	r = array_append(&fresh.rows, row);
	if (r == 0)
		r = array_append(&groups->items, fresh);
	if (r < 0)
		array_done(&fresh.rows);
	return r;
}

int run_groups_init(
	struct run_groups *groups, const struct run_rows *rows, run_equal_function *is_equal)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rows->items.count; i++)
		r = add_row(groups, &rows->items.items[i], is_equal);
	return r;
}

void run_groups_done(struct run_groups *groups)
{
	array_foreach (&groups->items, group)
		array_done(&group->rows);
	array_done(&groups->items);
}

static bool is_same_text(
	const struct run_row *a, const struct run_row *b, enum store_run_column column)
{
	return strcmp(run_text(a, column), run_text(b, column)) == 0;
}

static bool is_same_number(
	const struct run_row *a, const struct run_row *b, enum store_run_column column)
{
	double first = run_number(a, column), second = run_number(b, column);

	return first == second || (isnan(first) && isnan(second));
}

bool run_repeats(const struct run_row *a, const struct run_row *b)
{
	static const enum store_run_column texts[] = {STORE_RUN_EXPERIMENT, STORE_RUN_COMMIT,
		STORE_RUN_MODEL, STORE_RUN_PRECISION, STORE_RUN_ENGINE};
	bool is_same = is_same_number(a, b, STORE_RUN_BATCH_SIZE) &&
		       is_same_number(a, b, STORE_RUN_CONTEXT_LENGTH);

	/* A named experiment is one whatever the command says of files and seeds. */
	if (!*run_text(a, STORE_RUN_EXPERIMENT) && !is_same_text(a, b, STORE_RUN_COMMAND))
		return false;

	for (size_t i = 0; is_same && i < ARRAY_SIZE(texts); i++)
		is_same = is_same_text(a, b, texts[i]);
	return is_same;
}

bool run_has_same_commit(const struct run_row *a, const struct run_row *b)
{
	return is_same_text(a, b, STORE_RUN_COMMIT);
}

/* ---- two groups ---- */

struct moments {
	size_t count;
	double mean, variance;
};

static struct moments moments_of(const struct run_group *group, const struct store_figure *figure)
{
	struct moments moments = {0};
	double squares = 0;

	array_foreach (&group->rows, row) {
		double value = run_number(*row, figure->column), off = value - moments.mean;

		if (isnan(value))
			continue;
		moments.count++;
		moments.mean += off / (double)moments.count;
		squares += off * (value - moments.mean);
	}
	moments.variance = moments.count > 1 ? squares / (double)(moments.count - 1) : NAN;
	if (!moments.count)
		moments.mean = NAN;
	return moments;
}

struct run_change run_group_change(const struct run_group *before, const struct run_group *after,
	const struct store_figure *figure)
{
	struct moments a = moments_of(before, figure), b = moments_of(after, figure);

	return (struct run_change){
		.before = a.mean,
		.after = b.mean,
		.share = a.mean != 0 ? b.mean / a.mean - 1 : NAN,
		.p_value =
			statistics_welch(a.mean, a.variance, a.count, b.mean, b.variance, b.count),
		.before_count = a.count,
		.after_count = b.count,
	};
}
