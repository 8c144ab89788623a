/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_regress.h"

#include <errno.h>
#include <math.h>

#include "analyses/regress.h"
#include "cli/table.h"
#include "cli/text.h"
#include "exporters/escape.h"
#include "exporters/format.h"
#include "exporters/regress_json.h"

#define DEFAULT_LIMIT 20

struct regress_run {
	const char *path;
	struct model *model;
	struct selected selected;
};

static void run_done(struct regress_run *run)
{
	model_freep(&run->model);
	selected_done(&run->selected);
}

static int run_load(struct regress_run *run, const char *path, const struct shown_options *shown,
	const struct selection *selection, struct errmsg *err)
{
	int r = load_capture(path, shown, selection, &run->model, err);

	run->path = path;
	return r ?: selection_apply(selection, run->model, &run->selected, err);
}

/* CPU time takes part where both runs were sampled. */
static int compare(struct regress *regress, double threshold_percent,
	const struct regress_run *before, const struct regress_run *after, struct errmsg *err)
{
	struct diff_options options = {
		.by = BREAKDOWN_FUNCTION, .sort = BREAKDOWN_SORT_SELF, .per_second = false};
	_cleanup_diff_ struct diff diff = {0};
	bool has_samples = before->selected.count && after->selected.count;
	int r = has_samples ? diff_init(&diff, &options, before->model, &before->selected,
				      after->model, &after->selected)
			    : 0;

	r = r
		    ?: regress_init(regress, threshold_percent, before->model, after->model,
			       has_samples ? &diff : NULL);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while comparing");
	if (!regress->rows.count) {
		regress_done(regress);
		return errmsg_set(err, -ENODATA,
			"%s and %s have nothing in common to compare: no samples, steps, ranges or "
			"device work of the same names",
			before->path, after->path);
	}
	return 0;
}

static const struct table_column columns[] = {
	{.title = "Change", .right = true},
	{.title = "Before", .right = true},
	{.title = "After", .right = true},
	{.title = "Counts", .right = true},
	{.title = "Verdict"},
	{.title = "What", .dim = true},
	{.title = "Name", .shrinks_to = 28},
};

static void add_row(struct table *table, const struct regress_row *row)
{
	_cleanup_strbuf_ struct strbuf name = {0};

	table_cellf(table, "%+.1f %%", row->change_percent);
	table_duration(table, row->before.median_ns);
	table_duration(table, row->after.median_ns);
	table_cellf(table, "%llu, %llu", (unsigned long long)row->before.count,
		(unsigned long long)row->after.count);
	table_cell(table, regress_verdict_to_string(row->verdict));
	table_cell(table, regress_kind_to_string(row->kind));
	strbuf_addf(&name, "%s%s%s", row->domain, *row->domain ? ": " : "", row->name);
	table_cell(table, strbuf_cstr(&name));
}

static void add_counts(struct strbuf *out, const struct regress *regress, size_t hidden)
{
	if (hidden) {
		strbuf_add(out, "\xe2\x80\xa6 ");
		format_count(out, hidden);
		strbuf_add(out, " more (--limit shows more)\n");
	}
	if (regress->only_before + regress->only_after)
		strbuf_addf(out,
			"Not compared: %zu that only the baseline has, %zu that it lacks.\n",
			regress->only_before, regress->only_after);
	if (regress->judged < regress->rows.count)
		strbuf_addf(out,
			"too_few: fewer than %u values on a side; too_small: less than %d %% of "
			"the time of its kind. Neither is judged.\n",
			MAX(REGRESS_MIN_VALUES, 2 * regress->blocks), REGRESS_MIN_PERCENT);
}

static int write_text(const struct regress *regress, const struct regress_arguments *arguments,
	const char *path, struct strbuf *out)
{
	struct terminal terminal = terminal_of(stdout);
	size_t limit = arguments->limit ?: DEFAULT_LIMIT, count = regress->rows.count;
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	int r;

	escape_plain(out, path);
	strbuf_add(out, " against the baseline ");
	escape_plain(out, arguments->baseline);
	strbuf_addf(out,
		": medians of durations, slower from %g %% and outside of their spread on; of "
		"equal "
		"programs at most %g %% fail\n\n",
		arguments->threshold_percent, 100 * REGRESS_FALSE_ALARM);
	for (size_t i = 0; i < MIN(limit, count); i++)
		add_row(&table, &regress->rows.items[i]);
	r = table_print(&table, &terminal, out);
	add_counts(out, regress, count - MIN(limit, count));
	return r ?: strbuf_status(out);
}

/* The sentence that a log of CI needs. */
static void say_slower(const struct regress *regress, const struct regress_arguments *arguments)
{
	const struct regress_row *worst = &regress->rows.items[0];
	struct errmsg err;

	errmsg_set(&err, 0,
		"%zu of %zu got slower than in %.200s by more than %g %%, most the %s %.300s "
		"(%+.1f "
		"%%)",
		regress->slower, regress->rows.count, arguments->baseline,
		arguments->threshold_percent, regress_kind_to_string(worst->kind), worst->name,
		worst->change_percent);
	fail(&err);
}

int report_regress(const struct regress_arguments *arguments, const struct shown_options *shown,
	const struct selection *selection, const char *path)
{
	_cleanup_(run_done) struct regress_run before = {0};
	_cleanup_(run_done) struct regress_run after = {0};
	_cleanup_regress_ struct regress regress = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	int r = run_load(&before, arguments->baseline, shown, selection, &err);

	r = r ?: run_load(&after, path, shown, selection, &err);
	r = r ?: compare(&regress, arguments->threshold_percent, &before, &after, &err);
	if (r < 0)
		return fail(&err);
	r = arguments->json ? regress_json_write(&regress, arguments->threshold_percent,
				      arguments->baseline, path, arguments->limit, &out)
			    : write_text(&regress, arguments, path, &out);
	if (r < 0) {
		errmsg_set(&err, r, "memory ran out while writing the comparison");
		return fail(&err);
	}
	fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	if (regress.slower)
		say_slower(&regress, arguments);
	return regress.slower ? EXIT_ERROR : EXIT_OK;
}
