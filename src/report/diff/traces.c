/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diff/traces.h"

#include <inttypes.h>

#define VERSION       1
#define DEFAULT_LIMIT 20

static const struct report_column row_columns[] = {
	{.key = "time_change_ns", .title = "Change", .kind = REPORT_NS, .is_change = true},
	{.title = "", .kind = REPORT_SHARE, .decimals = 1, .is_change = true},
	{.key = "time_before_ns", .title = "Before", .kind = REPORT_NS},
	{.key = "time_after_ns", .title = "After", .kind = REPORT_NS},
	{.key = "count_before", .title = "Count", .kind = REPORT_COUNT},
	{.key = "count_after", .title = "After", .kind = REPORT_COUNT},
	{.key = "change", .kind = REPORT_TEXT, .help = "of the count"},
	{.title = "", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY},
	{.key = "kind", .title = "Kind", .kind = REPORT_TEXT},
	{.key = "name", .title = "Name", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 16},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column side_columns[] = {
	{.key = "path", .kind = REPORT_TEXT},
	{.key = "steps", .kind = REPORT_COUNT, .help = "of the first rank"},
};
static const struct report_shape side_shape = REPORT_SHAPE(side_columns);

static const struct report_column columns[] = {
	{.key = "format", .kind = REPORT_TEXT},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "sonde_version", .kind = REPORT_TEXT},
	{.key = "hta_compatible", .kind = REPORT_FLAG},
	{.key = "before", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "after", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "rows_total", .kind = REPORT_COUNT},
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &shape};

static void add_row(
	struct result *result, const struct trace_diff *diff, const struct trace_diff_row *row)
{
	enum trace_diff_change change = trace_diff_change_of(row);
	int64_t time_ns = row->time_ns[1] - row->time_ns[0];

	result_i64(result, time_ns);
	result_share(result, (double)time_ns, (double)row->time_ns[0]);
	result_i64(result, row->time_ns[0]);
	result_i64(result, row->time_ns[1]);
	result_u64(result, row->count[0]);
	result_u64(result, row->count[1]);
	result_text(result, trace_diff_change_name(change));
	result_text(result, change == TRACE_DIFF_UNCHANGED ? NULL : trace_diff_change_name(change));
	result_text(result, trace_diff_kind_name(row->kind));
	result_text(result, intern_get(&diff->names, row->name));
}

static bool fits(const struct trace_diff_report *report, const struct trace_diff_row *row)
{
	return report->is_json || report->all || row->count[0] != row->count[1] ||
	       row->time_ns[0] != row->time_ns[1];
}

/* Returns the table; the number of rows that fit, but are more than are wanted. */
static uint32_t add_rows(
	struct result *result, const struct trace_diff_report *report, size_t *ret_left_out)
{
	size_t limit = report->limit ? report->limit : report->is_json ? SIZE_MAX : DEFAULT_LIMIT;
	uint32_t table = result_open(result);
	size_t fitting = 0;

	array_foreach (&report->diff->rows, row) {
		if (fits(report, row) && fitting++ < limit)
			add_row(result, report->diff, row);
	}
	result_close(result);
	*ret_left_out = fitting - MIN(fitting, limit);
	return table;
}

static void add_side(struct result *result, const char *path, uint64_t steps)
{
	result_open(result);
	result_text(result, path);
	result_u64(result, steps);
	result_close(result);
}

/* Runs of different lengths differ in everything. */
static void say_steps(struct result *result, const struct trace_diff_report *report)
{
	const uint64_t *steps = report->diff->steps;

	if (report->hta_compatible)
		result_sentence(result, 2, "The first profiler step of the first rank of each.");
	else
		result_sentencef(result, 2,
			"Before: %zu rank(s), %" PRIu64 " profiler step(s). After: %zu rank(s), "
			"%" PRIu64 " step(s).%s",
			report->before_ranks, steps[0], report->after_ranks, steps[1],
			steps[0] != steps[1] || report->before_ranks != report->after_ranks
				? " They are of different lengths: times are of all they have."
				: "");
}

int trace_diff_report_make(struct result *result, const struct trace_diff_report *report)
{
	const struct trace_diff *diff = report->diff;
	size_t left_out;
	uint32_t rows;

	result->column = &document;
	result_open(result);
	result_text(result, "sonde-trace-diff");
	result_u64(result, VERSION);
	result_text(result, SONDE_VERSION);
	result_flag(result, report->hta_compatible);
	add_side(result, report->before_path, diff->steps[0]);
	add_side(result, report->after_path, diff->steps[1]);
	result_u64(result, diff->rows.count);
	rows = add_rows(result, report, &left_out);
	result_close(result);
	if (result_status(result) < 0)
		return result_status(result);
	say_steps(result, report);
	if (!result_rows(&result->tables.items[rows]))
		result_sentence(result, 0, "Nothing changed: equal counts and durations.");
	result_show(result, rows, &(struct result_show){.left_out = left_out, .noun = "changes"});
	return result_status(result);
}
