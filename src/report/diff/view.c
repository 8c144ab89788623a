/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diff/view.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/escape.h"
#include "base/text.h"
#include "model/format.h"
#include "report/table.h"

#define LOSS_TO_SAY 0.01 /* share of lost samples from which on times cannot be compared well */

static void add_side(struct strbuf *out, const char *which, const char *path,
	const struct diff *diff, const struct diff_side *side)
{
	strbuf_addf(out, "%s ", which);
	escape_plain(out, path);
	strbuf_add(out, ": ");
	if (diff->is_energy) {
		format_energy(out, side->energy_j);
		strbuf_add(out, ", ");
		format_duration(out, side->duration_ns);
		strbuf_add(out, " recorded\n");
		return;
	}
	if (diff->has_time) {
		format_duration(out, side->cpu_time_ns);
		strbuf_add(out, " of CPU time, ");
	}
	format_count(out, side->samples);
	strbuf_add(out, " samples, ");
	format_duration(out, side->duration_ns);
	strbuf_add(out, " recorded\n");
}

/* Seconds; with --per-second milliseconds of CPU time per second. */
static void add_time_change(struct strbuf *out, const struct diff *diff, double change)
{
	if (diff->is_energy && diff->options.per_second) {
		strbuf_addf(out, "%+.3g W", change);
	} else if (diff->is_energy) {
		strbuf_add(out, change < 0 ? "" : "+");
		format_energy(out, change);
	} else if (diff->options.per_second) {
		strbuf_addf(out, "%+.3g ms/s", 1e3 * change);
	} else {
		format_duration_change(out, change);
	}
}

static void add_total(struct strbuf *out, const struct diff *diff)
{
	double before = (double)diff->before.samples * diff->before.sample_weight;

	if (!diff->has_time) {
		strbuf_add(out,
			"CPU times are unknown: the captures do not say how much time a sample "
			"stands for. Shares are compared.\n");
		return;
	}
	strbuf_add(out, diff->is_energy            ? "Energy: "
			: diff->options.per_second ? "CPU time per second: "
						   : "CPU time: ");
	add_time_change(out, diff, diff->total_time_change);
	strbuf_addf(out, " (%+.2f %%), p = %.2g%s\n", 100 * diff->total_time_change / before,
		diff->total_time_p,
		diff->total_time_p <= DIFF_SIGNIFICANT ? "" : ", not significant");
}

static void add_caution(
	struct strbuf *out, const struct terminal *terminal, const char *path, double lost_share)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!(lost_share >= LOSS_TO_SAY))
		return;
	strbuf_addf(&text, "Caution: %.1f %% of the samples of ", 100 * lost_share);
	escape_plain(&text, path);
	strbuf_add(&text, " were lost, so that its CPU times are too small; compare shares, or "
			  "record again at "
			  "a lower frequency (sonde record -F).");
	text_wrap(out, strbuf_cstr(&text), 0, 2, terminal->width);
}

static const char *stars(double q)
{
	return q <= 0.001 ? "***" : q <= 0.01 ? "**" : q <= DIFF_SIGNIFICANT ? "*" : "";
}

static void add_row(struct table *table, const struct diff *diff, const struct diff_row *row)
{
	double before = (double)diff_row_before(diff, row) / (double)diff->before.samples;
	double after = (double)diff_row_after(diff, row) / (double)diff->after.samples;
	double q = diff->has_time ? row->time_q : row->share_q;
	_cleanup_strbuf_ struct strbuf time = {0};

	if (diff->has_time)
		add_time_change(&time, diff, row->time_change);
	else
		strbuf_add(&time, "?");
	table_cell(table, strbuf_cstr(&time));
	table_cellf(table, "%+.2f", 100 * row->share_change);
	table_cellf(table, "%.2f %%", 100 * before);
	table_cellf(table, "%.2f %%", 100 * after);
	table_cellf(table, q < 1e-4 ? "%.0e" : "%.2g", q);
	table_cell(table, stars(q));
	table_cell(table, row->name);
	if (diff->options.by == BREAKDOWN_FUNCTION)
		table_cell(table, row->module);
}

static const struct table_column columns[] = {
	{.title = "Time", .right = true},
	{.title = "Share", .right = true},
	{.title = "A", .right = true},
	{.title = "B", .right = true},
	{.title = "q", .right = true},
	{.title = ""},
	{.title = "Function", .shrinks_to = 28},
	{.title = "Module", .is_text = true, .dim = true, .shrinks_to = 10, .largest = 24},
};

static const struct table_column module_columns[] = {
	{.title = "Time", .right = true},
	{.title = "Share", .right = true},
	{.title = "A", .right = true},
	{.title = "B", .right = true},
	{.title = "q", .right = true},
	{.title = ""},
	{.title = "Module", .is_text = true, .shrinks_to = 16},
};

static void add_rest(struct strbuf *out, const struct diff *diff, size_t hidden, size_t unchanged)
{
	const char *what = breakdown_by_to_string(diff->options.by);

	if (hidden) {
		strbuf_add(out, "\xe2\x80\xa6 ");
		format_count(out, hidden);
		strbuf_add(out, " more (--limit shows more)\n");
	}
	if (unchanged) {
		format_count(out, unchanged);
		strbuf_addf(out, " %s%s did not change significantly (--all shows them)\n", what,
			unchanged == 1 ? "" : "s");
	}
}

static int add_table(const struct diff *diff, const struct terminal *terminal, size_t limit,
	bool all, struct strbuf *out)
{
	bool by_function = diff->options.by == BREAKDOWN_FUNCTION;
	struct table_column shown[ARRAY_SIZE(columns)];
	_cleanup_table_ struct table table = {
		.columns = shown,
		.column_count = by_function ? ARRAY_SIZE(columns) : ARRAY_SIZE(module_columns),
	};
	size_t fitting = 0, others = 0;
	int r;

	memcpy(shown, by_function ? columns : module_columns, table.column_count * sizeof(*shown));
	if (diff->is_energy)
		shown[0].title = "Energy";

	array_foreach (&diff->rows, row) {
		if (!all && !diff_row_is_significant(diff, row)) {
			others++;
			continue;
		}
		if (fitting++ < limit)
			add_row(&table, diff, row);
	}
	strbuf_add_char(out, '\n');
	if (!fitting)
		strbuf_addf(out, "No %s changed significantly.\n",
			breakdown_by_to_string(diff->options.by));
	r = table_print(&table, terminal, out);
	add_rest(out, diff, fitting - MIN(fitting, limit), others);
	return r;
}

int diff_view_print(const struct diff *diff, const char *before_path, const char *after_path,
	size_t limit, bool all, struct strbuf *out)
{
	struct terminal terminal = terminal_of(stdout);
	int r;

	add_side(out, "A", before_path, diff, &diff->before);
	add_side(out, "B", after_path, diff, &diff->after);
	add_total(out, diff);
	add_caution(out, &terminal, before_path, diff->before.lost_share);
	add_caution(out, &terminal, after_path, diff->after.lost_share);
	r = add_table(diff, &terminal, limit, all, out);
	return r ?: strbuf_status(out);
}
