/* SPDX-License-Identifier: Apache-2.0 */
/* What changed in device work. */
#include <math.h>

#include "model/format.h"
#include "report/diff/internal.h"

static const struct report_column figure_columns[] = {
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "total_ns", .kind = REPORT_NS},
	{.key = "mean_ns", .kind = REPORT_NS, .help = "null: there is none"},
	{.key = "share", .kind = REPORT_SHARE, .help = "of the side's device time"},
};
static const struct report_shape figure_shape = REPORT_SHAPE(figure_columns);

static const struct report_column row_columns[] = {
	{.title = "Time", .kind = REPORT_NS, .is_change = true, .hide = REPORT_HIDE_EMPTY},
	{.title = "ms/s",
		.kind = REPORT_NUMBER,
		.digits = 3,
		.is_change = true,
		.hide = REPORT_HIDE_EMPTY},
	{.title = "Share", .kind = REPORT_NUMBER, .decimals = 2, .is_change = true},
	{.title = "A", .kind = REPORT_NS},
	{.title = "B", .kind = REPORT_NS},
	{.title = "Count A", .kind = REPORT_COUNT},
	{.title = "B", .kind = REPORT_COUNT},
	{.title = "Mean A", .kind = REPORT_NS},
	{.title = "B", .kind = REPORT_NS},
	{.title = "Change", .kind = REPORT_TEXT},
	{.key = "kind", .title = "Kind", .kind = REPORT_TEXT},
	{.title = "Kernel", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 16},
	{.key = "name", .kind = REPORT_TEXT},
	{.key = "before", .kind = REPORT_OBJECT, .shape = &figure_shape},
	{.key = "after", .kind = REPORT_OBJECT, .shape = &figure_shape},
	{.key = "time_change_ns", .kind = REPORT_NS, .help = "the sum of the next two"},
	{.key = "by_count_ns", .kind = REPORT_NS},
	{.key = "by_duration_ns", .kind = REPORT_NS},
	{.key = "time_change_ns_per_s", .kind = REPORT_NS, .help = "with --per-second"},
	{.key = "by_count_ns_per_s", .kind = REPORT_NS},
	{.key = "by_duration_ns_per_s", .kind = REPORT_NS},
	{.key = "duration_q", .kind = REPORT_NUMBER, .help = "null: it was not tested"},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column side_columns[] = {
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "total_ns", .kind = REPORT_NS},
};
static const struct report_shape side_shape = REPORT_SHAPE(side_columns);

static const struct report_column columns[] = {
	{.key = "before", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "after", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "rows_total", .kind = REPORT_COUNT},
	{.key = "rows",
		.kind = REPORT_ROWS,
		.shape = &row_shape,
		.help = "of one name and kind, on all devices"},
};
const struct report_shape diff_device_shape = REPORT_SHAPE(columns);

/* Which of the two parts of the change is known, and larger. */
const char *diff_report_reason(const struct device_diff_row *row)
{
	bool differs = row->duration_q <= DEVICE_DIFF_SIGNIFICANT;

	if (!row->before.count || !row->after.count)
		return row->before.count ? "gone" : "new";
	if (differs && fabs(row->by_duration_ns) > fabs(row->by_count_ns))
		return row->by_duration_ns > 0 ? "each longer" : "each shorter";
	if (row->before.count != row->after.count)
		return row->after.count > row->before.count ? "more often" : "less often";
	return isnan(row->duration_q) ? "too few to tell" : "noise";
}

static void add_figures(struct result *result, const struct device_diff_figures *figures)
{
	result_open(result);
	result_u64(result, figures->count);
	result_u64(result, figures->total_ns);
	result_number(result, figures->mean_ns);
	result_number(result, figures->share);
	result_close(result);
}

static void add_row(struct result *result, const struct device_diff_row *row, bool per_second)
{
	const double changes[] = {row->change_ns, row->by_count_ns, row->by_duration_ns};

	result_number(result, per_second ? NAN : row->change_ns);
	result_number(result, per_second ? row->change_ns / NS_PER_MS : NAN);
	result_number(result, 100 * (row->after.share - row->before.share));
	result_u64(result, row->before.total_ns);
	result_u64(result, row->after.total_ns);
	result_u64(result, row->before.count);
	result_u64(result, row->after.count);
	result_number(result, row->before.mean_ns);
	result_number(result, row->after.mean_ns);
	result_text(result, diff_report_reason(row));
	result_text(result, wire_device_kind_name(row->kind));
	result_text(result, row->kind == WIRE_DEVICE_KERNEL ? row->name : NULL);
	result_text(result, row->name);
	add_figures(result, &row->before);
	add_figures(result, &row->after);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		result_number(result, per_second ? NAN : changes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		result_number(result, per_second ? changes[i] : NAN);
	result_number(result, row->duration_q);
}

static bool fits(const struct diff_report *report, const struct device_diff_row *row)
{
	return report->is_json || report->all || device_diff_known_change_ns(row) != 0;
}

static size_t count_fitting(const struct diff_report *report)
{
	size_t count = 0;

	array_foreach (&report->device->rows, row)
		count += fits(report, row);
	return count;
}

static void add_side(struct result *result, const struct device_diff_side *side)
{
	result_open(result);
	result_u64(result, side->count);
	result_u64(result, side->total_ns);
	result_close(result);
}

uint32_t diff_add_device(struct result *result, const struct diff_report *report)
{
	const struct device_diff *device = report->device;
	size_t left = diff_report_wanted(report, count_fitting(report));
	uint32_t rows;

	result_open(result);
	add_side(result, &device->before);
	add_side(result, &device->after);
	result_u64(result, device->rows.count);
	rows = result_open(result);
	array_foreach (&device->rows, row) {
		if (left && fits(report, row)) {
			add_row(result, row, device->per_second);
			left--;
		}
	}
	result_close(result);
	result_close(result);
	return rows;
}

static void add_side_time(struct strbuf *out, const char *name, const struct device_diff_side *side)
{
	strbuf_addf(out, ", %s ", name);
	format_duration(out, side->total_ns);
	strbuf_add(out, " in ");
	format_count(out, side->count);
}

static void say_total(struct result *result, const struct device_diff *device)
{
	double before = (double)device->before.total_ns * device->before.weight;
	double after = (double)device->after.total_ns * device->after.weight;
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, device->per_second ? "Device time per second: " : "Device time: ");
	diff_add_time_change(&text, device->per_second, (after - before) / NS_PER_S);
	if (before > 0)
		strbuf_addf(&text, " (%+.2f %%)", 100 * (after - before) / before);
	add_side_time(&text, "A", &device->before);
	add_side_time(&text, "B", &device->after);
	strbuf_add(&text, " pieces of work");
	result_lines(result, "\n");
	result_say(result, 0, &text);
	result_lines(result, "\n");
}

void diff_show_device(struct result *result, const struct diff_report *report, uint32_t rows)
{
	size_t fitting = count_fitting(report);
	size_t others = report->device->rows.count - fitting;

	say_total(result, report->device);
	if (!fitting)
		result_sentence(result, 0, "No device work changed significantly.");
	result_show(result, rows,
		&(struct result_show){.left_out = fitting - diff_report_wanted(report, fitting),
			.noun = "kinds of device work"});
	if (others)
		result_sentencef(result, 0,
			"%zu kinds of device work did not change significantly (--all shows them).",
			others);
}
