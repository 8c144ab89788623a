/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "report/render.h"
#include "store/documents.h"
#include "store/groups.h"

#define VERSION     1
#define SIGNIFICANT 0.05

static const struct report_column best_columns[] = {
	{.key = "what", .kind = REPORT_TEXT},
	{.key = "run", .kind = REPORT_TEXT},
};
static const struct report_shape best_shape = REPORT_SHAPE(best_columns);

static const struct report_column spread_columns[] = {
	{.key = "minimum", .title = "Least", .kind = REPORT_NUMBER, .digits = 4},
	{.key = "maximum", .title = "Most", .kind = REPORT_NUMBER, .digits = 4},
	{.key = "factor",
		.title = "Factor",
		.kind = REPORT_NUMBER,
		.digits = 3,
		.help = "maximum / minimum"},
	{.key = "figure", .title = "Figure", .kind = REPORT_TEXT},
	{.key = "best", .kind = REPORT_TEXT, .help = "the id of the best run"},
	{.title = "Best", .kind = REPORT_TEXT},
};
static const struct report_shape spread_shape = REPORT_SHAPE(spread_columns);

static const struct report_column change_columns[] = {
	{.key = "before", .title = "Before", .kind = REPORT_NUMBER, .digits = 4},
	{.key = "after", .title = "After", .kind = REPORT_NUMBER, .digits = 4},
	{.key = "change_share", .title = "Change", .kind = REPORT_SHARE, .is_change = true},
	{.key = "p_value", .title = "p", .kind = REPORT_NUMBER, .digits = 2},
	{.key = "is_significant", .title = "Significant", .kind = REPORT_FLAG},
	{.key = "before_runs", .kind = REPORT_COUNT},
	{.key = "after_runs", .kind = REPORT_COUNT},
	{.key = "figure", .title = "Figure", .kind = REPORT_TEXT},
	{.key = "before_run",
		.kind = REPORT_TEXT,
		.help = "the first run of those that repeat one another"},
	{.key = "after_run", .kind = REPORT_TEXT},
	{.title = "From", .kind = REPORT_TEXT},
	{.title = "To", .kind = REPORT_TEXT},
};
static const struct report_shape change_shape = REPORT_SHAPE(change_columns);

static const struct report_column compare_columns[] = {
	{.key = "format", .kind = REPORT_TEXT},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "runs", .kind = REPORT_ROWS, .shape = &store_run_shape},
	{.key = "best",
		.kind = REPORT_MAP,
		.shape = &best_shape,
		.help = "fastest, most_efficient and lowest_energy: ids"},
	{.key = "spread", .kind = REPORT_ROWS, .shape = &spread_shape},
	{.key = "changes",
		.kind = REPORT_ROWS,
		.shape = &change_shape,
		.help = "between runs that repeat one another; by Welch's test"},
};
static const struct report_shape compare_shape = REPORT_SHAPE(compare_columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &compare_shape};

/* ---- the best ---- */

static const struct run_row *best_of(
	const struct run_rows *rows, enum store_run_column column, bool is_rate)
{
	const struct run_row *best = NULL;

	array_foreach (&rows->items, row) {
		double value = run_number(row, column);
		double least = best ? run_number(best, column) : NAN;

		if (!isnan(value) && (!best || (is_rate ? value > least : value < least)))
			best = row;
	}
	return best;
}

/* By tokens where runs have some, else by how long they took. */
static const struct run_row *fastest_of(const struct run_rows *rows)
{
	const struct run_row *best = best_of(rows, STORE_RUN_TOKENS_PER_S, true);

	return best ? best : best_of(rows, STORE_RUN_DURATION, false);
}

static void add_best(struct result *result, const struct run_rows *rows)
{
	const struct {
		const char *what, *sentence;
		const struct run_row *row;
	} best[] = {
		{"fastest", "Fastest", fastest_of(rows)},
		{"most_efficient", "Least energy for a token",
			best_of(rows, STORE_RUN_JOULES_PER_TOKEN, false)},
		{"lowest_energy", "Least energy", best_of(rows, STORE_RUN_ENERGY_J, false)},
	};

	result_open(result);
	for (size_t i = 0; i < ARRAY_SIZE(best); i++) {
		result_text(result, best[i].what);
		result_text(result, best[i].row ? run_text(best[i].row, STORE_RUN_ID) : NULL);
	}
	result_close(result);
	for (size_t i = 0; i < ARRAY_SIZE(best); i++) {
		if (best[i].row)
			result_sentencef(result, 0, "%s: %.*s (%s).", best[i].sentence,
				STORE_SHORT_ID, run_text(best[i].row, STORE_RUN_ID),
				run_text(best[i].row, STORE_RUN_PATH));
	}
}

/* ---- spread ---- */

static void add_spread_of(
	struct result *result, const struct run_rows *rows, const struct store_figure *figure)
{
	const struct run_row *best = best_of(rows, figure->column, figure->is_rate);
	double least = INFINITY, most = -INFINITY;

	if (!best)
		return;
	array_foreach (&rows->items, row) {
		least = fmin(least, run_number(row, figure->column));
		most = fmax(most, run_number(row, figure->column));
	}
	result_number(result, least);
	result_number(result, most);
	result_number(result, least > 0 ? most / least : NAN);
	result_text(result, store_figure_name(figure));
	result_text(result, run_text(best, STORE_RUN_ID));
	result_textf(result, "%.*s", STORE_SHORT_ID, run_text(best, STORE_RUN_ID));
}

static uint32_t add_spread(struct result *result, const struct run_rows *rows)
{
	uint32_t table = result_open(result);

	for (size_t i = 0; i < STORE_FIGURE_COUNT; i++)
		add_spread_of(result, rows, &store_figures[i]);
	result_close(result);
	return table;
}

/* ---- changes between groups ---- */

static void add_change(struct result *result, const struct run_group *before,
	const struct run_group *after, const struct store_figure *figure)
{
	struct run_change change = run_group_change(before, after, figure);
	const char *from = run_text(before->rows.items[0], STORE_RUN_ID);
	const char *to = run_text(after->rows.items[0], STORE_RUN_ID);

	if (isnan(change.p_value))
		return;
	result_number(result, change.before);
	result_number(result, change.after);
	result_number(result, change.share);
	result_number(result, change.p_value);
	result_flag(result, change.p_value <= SIGNIFICANT);
	result_u64(result, change.before_count);
	result_u64(result, change.after_count);
	result_text(result, store_figure_name(figure));
	result_text(result, from);
	result_text(result, to);
	result_textf(result, "%.*s", STORE_SHORT_ID, from);
	result_textf(result, "%.*s", STORE_SHORT_ID, to);
}

static uint32_t add_changes(struct result *result, const struct run_groups *groups)
{
	uint32_t table = result_open(result);

	for (size_t i = 0; i < groups->items.count; i++) {
		for (size_t j = i + 1; j < groups->items.count; j++) {
			for (size_t f = 0; f < STORE_FIGURE_COUNT; f++)
				add_change(result, &groups->items.items[i], &groups->items.items[j],
					&store_figures[f]);
		}
	}
	result_close(result);
	return table;
}

static int make(struct result *result, const struct run_rows *rows)
{
	_cleanup_run_groups_ struct run_groups groups = {0};
	uint32_t runs, spread, changes;
	int r = run_groups_init(&groups, rows, run_repeats);

	if (r < 0)
		return r;
	result->column = &document;
	result_open(result);
	result_text(result, "sonde-runs-compare");
	result_u64(result, VERSION);
	runs = result_open(result);
	array_foreach (&rows->items, row)
		store_add_run(result, rows, row);
	result_close(result);
	result_show(result, runs, &(struct result_show){0});
	add_best(result, rows);
	spread = add_spread(result, rows);
	changes = add_changes(result, &groups);
	result_close(result);
	result_heading(result, "Spread");
	result_show(result, spread, &(struct result_show){0});
	if (result_count(result, changes)) {
		result_heading(result, "Between runs that repeat one another");
		result_show(result, changes, &(struct result_show){0});
	} else {
		result_sentence(result, 0,
			"No significance: two runs or more of each kind are needed for it.");
	}
	return result_status(result);
}

int store_compare(struct store *store, const char *const *names, size_t count,
	struct result *result, struct errmsg *err)
{
	_cleanup_run_rows_ struct run_rows rows = {0};
	int r = 0;

	if (count < 2 || count > STORE_COMPARE_MOST)
		return errmsg_set(err, -EINVAL,
			"2 to %d runs can be compared, not %zu: 'sonde runs analyse' takes any "
			"number",
			STORE_COMPARE_MOST, count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = store_find_run(store, names[i], &rows, err);
	if (r < 0)
		return r;
	r = make(result, &rows);
	return r < 0 ? errmsg_set(err, r, "memory ran out while comparing runs") : 0;
}

int store_compare_schema(struct strbuf *out)
{
	return report_render_schema_document(&compare_shape, "sonde runs compare --json", out);
}
