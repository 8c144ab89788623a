/* SPDX-License-Identifier: Apache-2.0 */
/* What changed in what threads and devices did. */
#include <math.h>

#include "compat/hta/diff.h"
#include "model/format.h"
#include "report/diff/internal.h"

static const struct report_column row_columns[] = {
	{.key = "time_change_ns",
		.title = "Time",
		.kind = REPORT_NS,
		.is_change = true,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "the sum of by_count_ns and by_duration_ns"},
	{.key = "time_change_ns_per_s",
		.title = "Time/s",
		.kind = REPORT_NS,
		.is_change = true,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "with --per-second, in place of time_change_ns"},
	{.title = "", .kind = REPORT_SHARE, .decimals = 1, .is_change = true},
	{.key = "time_before_ns", .title = "A", .kind = REPORT_NS},
	{.key = "time_after_ns", .title = "B", .kind = REPORT_NS},
	{.key = "count_before", .title = "Count A", .kind = REPORT_COUNT},
	{.key = "count_after", .title = "B", .kind = REPORT_COUNT},
	{.key = "mean_before_ns", .title = "Mean A", .kind = REPORT_NS},
	{.key = "mean_after_ns", .title = "B", .kind = REPORT_NS},
	{.key = "change",
		.title = "Change",
		.kind = REPORT_TEXT,
		.help = "of the two parts of the change the one that is known, and larger"},
	{.key = "kind", .title = "Kind", .kind = REPORT_TEXT},
	{.key = "name", .title = "Name", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 16},
	{.key = "share_before", .kind = REPORT_SHARE, .help = "of the side's device time"},
	{.key = "share_after", .kind = REPORT_SHARE},
	{.key = "by_count_ns", .kind = REPORT_NS},
	{.key = "by_duration_ns", .kind = REPORT_NS},
	{.key = "by_count_ns_per_s", .kind = REPORT_NS},
	{.key = "by_duration_ns_per_s", .kind = REPORT_NS},
	{.key = "duration_q", .kind = REPORT_NUMBER, .help = "null: it was not tested"},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column columns[] = {
	{.key = "rows_total", .kind = REPORT_COUNT},
	{.key = "rows",
		.kind = REPORT_ROWS,
		.shape = &row_shape,
		.help = "of one kind and name, of all ranks, threads and devices"},
};
const struct report_shape diff_work_shape = REPORT_SHAPE(columns);

/* ---- figures ---- */

static void add_row(
	struct result *result, const struct diff_report *report, const struct row_diff_row *row)
{
	const struct row_diff_figures *before = &row->sides[0], *after = &row->sides[1];
	bool per_second = report->per_second;

	result_number(result, per_second ? NAN : row->change_ns);
	result_number(result, per_second ? row->change_ns : NAN);
	result_share(
		result, row->change_ns, (double)before->total_ns * report->rows->sides[0].weight);
	result_i64(result, before->total_ns);
	result_i64(result, after->total_ns);
	result_u64(result, before->count);
	result_u64(result, after->count);
	result_number(result, before->mean_ns);
	result_number(result, after->mean_ns);
	result_text(result, report->hta_compatible ? hta_diff_change_name(row)
						   : row_diff_change_name(row_diff_change_of(row)));
	result_text(result, row_diff_kind_name(row->kind));
	result_text(result, row->name);
	result_number(result, before->share);
	result_number(result, after->share);
	result_number(result, per_second ? NAN : row->by_count_ns);
	result_number(result, per_second ? NAN : row->by_duration_ns);
	result_number(result, per_second ? row->by_count_ns : NAN);
	result_number(result, per_second ? row->by_duration_ns : NAN);
	result_number(result, row->duration_q);
}

struct diff_rows diff_add_work(struct result *result, const struct diff_report *report)
{
	const struct row_diff *diff = report->rows;
	struct diff_rows rows = {0};

	result_open(result);
	result_u64(result, diff->rows.count);
	rows.table = result_open(result);
	array_foreach (&diff->rows, row) {
		if (diff_takes_row(
			    &rows, result, report, row_diff_change_of(row) != ROW_DIFF_UNCHANGED))
			add_row(result, report, row);
	}
	result_close(result);
	result_close(result);
	return rows;
}

/* ---- sentences ---- */

static void add_side_time(struct strbuf *out, const char *name, const struct row_diff_side *side)
{
	strbuf_addf(out, ", %s ", name);
	format_duration(out, (uint64_t)side->device_ns);
	strbuf_add(out, " in ");
	format_count(out, side->works);
}

static void say_device_time(struct result *result, const struct diff_report *report)
{
	const struct row_diff_side *sides = report->rows->sides;
	double before = (double)sides[0].device_ns * sides[0].weight;
	double after = (double)sides[1].device_ns * sides[1].weight;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!sides[0].works && !sides[1].works)
		return;
	strbuf_add(&text, report->per_second ? "Device time per second: " : "Device time: ");
	diff_add_time_change(&text, report->per_second, after - before);
	if (before > 0)
		strbuf_addf(&text, " (%+.2f %%)", 100 * (after - before) / before);
	add_side_time(&text, "A", &sides[0]);
	add_side_time(&text, "B", &sides[1]);
	strbuf_add(&text, " pieces of work");
	result_say(result, 0, &text);
}

/* Runs of different lengths differ in everything. */
static void say_lengths(struct result *result, const struct diff_report *report)
{
	const struct row_diff_side *sides = report->rows->sides;

	if (report->hta_compatible)
		result_sentence(result, 0, "The first profiler step of the first rank of each.");
	else if (!report->per_second &&
		 (report->ranks[0] != report->ranks[1] || sides[0].steps != sides[1].steps))
		result_sentencef(result, 0,
			"They are of different lengths (A: ranks %zu, steps %llu; B: ranks %zu, "
			"steps %llu): times are of all they have.",
			report->ranks[0], (unsigned long long)sides[0].steps, report->ranks[1],
			(unsigned long long)sides[1].steps);
}

void diff_show_work(
	struct result *result, const struct diff_report *report, const struct diff_rows *rows)
{
	result_heading(result, "What threads and devices did");
	say_device_time(result, report);
	say_lengths(result, report);
	if (!rows->fitting)
		result_sentence(result, 0, "Nothing changed: equal counts and durations.");
	result_show(result, rows->table, &(struct result_show){.noun = "changes"});
	if (rows->others)
		result_sentencef(result, 0, "%zu did not change (--all shows them).", rows->others);
}
