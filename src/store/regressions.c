/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "analyses/statistics.h"
#include "report/render.h"
#include "store/documents.h"
#include "store/groups.h"

#define VERSION     1
#define SIGNIFICANT 0.05

static const struct report_column row_columns[] = {
	{.key = "before", .title = "Before", .kind = REPORT_NUMBER, .digits = 4},
	{.key = "after", .title = "After", .kind = REPORT_NUMBER, .digits = 4},
	{.key = "change_share", .title = "Change", .kind = REPORT_SHARE, .is_change = true},
	{.key = "q_value",
		.title = "q",
		.kind = REPORT_NUMBER,
		.digits = 2,
		.help = "false discovery rate over all rows; null: fewer than two runs"},
	{.key = "before_runs", .kind = REPORT_COUNT},
	{.key = "after_runs", .kind = REPORT_COUNT},
	{.key = "verdict",
		.title = "Verdict",
		.kind = REPORT_TEXT,
		.help = "worse, better; same: the change is below the threshold; noise: within the "
			"spread of the runs; unclear: there are too few runs"},
	{.key = "figure", .title = "Figure", .kind = REPORT_TEXT},
	{.key = "before_commit", .title = "From", .kind = REPORT_TEXT},
	{.key = "commit", .title = "Commit", .kind = REPORT_TEXT},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column columns[] = {
	{.key = "format", .kind = REPORT_TEXT},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "experiment", .kind = REPORT_TEXT},
	{.key = "threshold_percent", .kind = REPORT_NUMBER},
	{.key = "commits", .kind = REPORT_COUNT},
	{.key = "runs_without_commit", .kind = REPORT_COUNT},
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &shape};

struct step {
	struct run_change change;
	double q_value;
	const struct store_figure *figure;
	const struct run_row *before, *after; /* the first of each */
	bool is_last;
};

struct steps {
	ARRAY_OF(struct step) items;
	size_t commits, without_commit;
};

/* ---- figures ---- */

static int add_step(struct steps *steps, const struct run_group *before,
	const struct run_group *after, const struct store_figure *figure, bool is_last)
{
	struct step step = {
		.change = run_group_change(before, after, figure),
		.figure = figure,
		.before = before->rows.items[0],
		.after = after->rows.items[0],
		.is_last = is_last,
	};

	step.q_value = step.change.p_value;
	return isnan(step.change.share) ? 0 : array_append(&steps->items, step);
}

/* The p-values that there are become false discovery rates. */
static int correct(struct steps *steps)
{
	ARRAY_OF(double) values = {0};
	size_t next = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < steps->items.count; i++) {
		if (!isnan(steps->items.items[i].q_value))
			r = array_append(&values, steps->items.items[i].q_value);
	}
	if (r == 0)
		r = statistics_benjamini_hochberg(values.items, values.count);
	for (size_t i = 0; r == 0 && i < steps->items.count; i++) {
		if (!isnan(steps->items.items[i].q_value))
			steps->items.items[i].q_value = values.items[next++];
	}
	array_done(&values);
	return r;
}

static int find_steps(struct steps *steps, const struct run_groups *groups)
{
	const struct run_group *before = NULL;
	size_t left = groups->items.count;
	int r = 0;

	array_foreach (&groups->items, group) {
		bool has_commit = *run_text(group->rows.items[0], STORE_RUN_COMMIT) != '\0';

		left--;
		if (!has_commit) {
			steps->without_commit += group->rows.count;
			continue;
		}
		steps->commits++;
		for (size_t f = 0; r == 0 && before && f < STORE_FIGURE_COUNT; f++)
			r = add_step(steps, before, group, &store_figures[f], left == 0);
		before = group;
	}
	return r < 0 ? r : correct(steps);
}

static const char *verdict_of(const struct step *step, double threshold_percent)
{
	double share = step->change.share;

	if (fabs(share) * 100 < threshold_percent)
		return "same";
	if (isnan(step->q_value))
		return "unclear";
	if (step->q_value > SIGNIFICANT)
		return "noise";
	return (share > 0) == step->figure->is_rate ? "better" : "worse";
}

/* ---- the document ---- */

static uint32_t add_rows(struct result *result, const struct steps *steps, double threshold_percent,
	size_t *ret_worse)
{
	uint32_t table = result_open(result);

	array_foreach (&steps->items, step) {
		const char *verdict = verdict_of(step, threshold_percent);

		*ret_worse += step->is_last && *verdict == 'w';
		result_number(result, step->change.before);
		result_number(result, step->change.after);
		result_number(result, step->change.share);
		result_number(result, step->q_value);
		result_u64(result, step->change.before_count);
		result_u64(result, step->change.after_count);
		result_text(result, verdict);
		result_text(result, store_figure_name(step->figure));
		result_text(result, run_text(step->before, STORE_RUN_COMMIT));
		result_text(result, run_text(step->after, STORE_RUN_COMMIT));
	}
	result_close(result);
	return table;
}

static int make(struct result *result, const struct steps *steps, const char *experiment,
	double threshold_percent, size_t *ret_worse)
{
	uint32_t table;

	result->column = &document;
	result_open(result);
	result_text(result, "sonde-runs-regressions");
	result_u64(result, VERSION);
	result_text(result, experiment);
	result_number(result, threshold_percent);
	result_u64(result, steps->commits);
	result_u64(result, steps->without_commit);
	table = add_rows(result, steps, threshold_percent, ret_worse);
	result_close(result);
	if (steps->commits < 2)
		result_sentencef(result, 0,
			"%s has runs of %zu commits: two or more are compared. 'sonde runs add "
			"--commit ID' says of which a run is.",
			experiment, steps->commits);
	else
		result_show(result, table, &(struct result_show){0});
	if (steps->without_commit)
		result_sentencef(result, 0, "%zu runs say no commit and are left out.",
			steps->without_commit);
	return result_status(result);
}

static int make_of_rows(struct result *result, const struct run_rows *rows, const char *experiment,
	double threshold_percent, size_t *ret_worse)
{
	_cleanup_run_groups_ struct run_groups groups = {0};
	struct steps steps = {0};
	int r = run_groups_init(&groups, rows, run_has_same_commit);

	if (r == 0)
		r = find_steps(&steps, &groups);
	if (r == 0)
		r = make(result, &steps, experiment, threshold_percent, ret_worse);
	array_done(&steps.items);
	return r;
}

int store_regressions(struct store *store, const char *experiment, double threshold_percent,
	struct result *result, size_t *ret_worse, struct errmsg *err)
{
	_cleanup_run_rows_ struct run_rows rows = {0};
	const struct store_filter filter = {.experiment = experiment};
	const struct store_order oldest = {.rising = true};
	size_t worse = 0;
	int r = store_read_runs(store, &filter, &oldest, &rows, err);

	if (r < 0)
		return r;
	if (!rows.items.count)
		return errmsg_set(err, -ENOENT,
			"there are no runs of the experiment '%.200s' in %s: 'sonde runs' lists "
			"what there is",
			experiment, store->address);
	r = make_of_rows(result, &rows, experiment, threshold_percent, &worse);
	*ret_worse = worse;
	return r < 0 ? errmsg_set(err, r, "memory ran out while comparing commits") : 0;
}

int store_regressions_schema(struct strbuf *out)
{
	return report_render_schema_document(&shape, "sonde runs regressions --json", out);
}
