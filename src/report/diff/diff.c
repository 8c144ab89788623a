/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diff/diff.h"

#include <math.h>

#include "model/format.h"
#include "report/diff/internal.h"

#define VERSION 1

/* Share of lost samples from which on times cannot be compared well. */
#define LOSS_TO_SAY 0.01

/* Tables: of functions, of modules. */
enum { FUNCTIONS, MODULES };
#define OF_FUNCTIONS (1U << FUNCTIONS)
#define OF_MODULES   (1U << MODULES)
#define BOTH         (OF_FUNCTIONS | OF_MODULES)

#define CHANGE(name, of_kind, ...)                                                                 \
	{                                                                                          \
		.title = (name), .kind = (of_kind), .views = BOTH, .is_change = true,              \
		.hide = REPORT_HIDE_EMPTY, __VA_ARGS__                                             \
	}

/* Of energy, samples and times are null; of time, what is of energy. */
static const struct report_column row_columns[] = {
	CHANGE("Time", REPORT_NS),
	CHANGE("ms/s", REPORT_NUMBER, .digits = 3),
	{.key = "time_change_s", .kind = REPORT_NUMBER},
	{.key = "time_change_s_per_s", .kind = REPORT_NUMBER, .help = "with --per-second"},
	CHANGE("Energy", REPORT_JOULES, .key = "energy_change_j"),
	CHANGE("Power", REPORT_WATTS, .key = "energy_change_w", .help = "with --per-second"),
	{.title = "Share", .kind = REPORT_NUMBER, .views = BOTH, .decimals = 2, .is_change = true},
	{.key = "share_change", .kind = REPORT_SHARE},
	{.title = "A", .kind = REPORT_SHARE, .views = BOTH},
	{.title = "B", .kind = REPORT_SHARE, .views = BOTH},
	{.title = "q", .kind = REPORT_NUMBER, .views = BOTH, .digits = 2},
	{.title = "", .kind = REPORT_TEXT, .views = BOTH},
	{.key = "time_q", .kind = REPORT_NUMBER},
	{.key = "energy_q", .kind = REPORT_NUMBER},
	{.key = "share_q", .kind = REPORT_NUMBER},
	{.key = "significant", .kind = REPORT_FLAG},
	{.key = "self_samples_before", .kind = REPORT_COUNT},
	{.key = "self_samples_after", .kind = REPORT_COUNT},
	{.key = "total_samples_before", .kind = REPORT_COUNT},
	{.key = "total_samples_after", .kind = REPORT_COUNT},
	{.key = "self_energy_uj_before", .kind = REPORT_COUNT},
	{.key = "self_energy_uj_after", .kind = REPORT_COUNT},
	{.key = "total_energy_uj_before", .kind = REPORT_COUNT},
	{.key = "total_energy_uj_after", .kind = REPORT_COUNT},
	{.key = "name",
		.title = "Function",
		.kind = REPORT_TEXT,
		.is_name = true,
		.shrinks_to = 28},
	{.title = "Module", .kind = REPORT_TEXT, .views = OF_MODULES, .shrinks_to = 16},
	{.key = "module",
		.title = "Module",
		.kind = REPORT_TEXT,
		.is_dim = true,
		.shrinks_to = 10,
		.largest = 24,
		.help = "of functions"},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column side_columns[] = {
	{.key = "path", .kind = REPORT_TEXT},
	{.key = "samples", .kind = REPORT_COUNT},
	{.key = "duration_ns", .kind = REPORT_NS},
	{.key = "cpu_time_ns", .kind = REPORT_NS},
	{.key = "energy_j", .kind = REPORT_JOULES},
	{.key = "lost_share", .kind = REPORT_SHARE},
};
static const struct report_shape side_shape = REPORT_SHAPE(side_columns);

static const struct report_column total_columns[] = {
	{.key = "time_change_s", .kind = REPORT_NUMBER},
	{.key = "time_change_s_per_s", .kind = REPORT_NUMBER},
	{.key = "energy_change_j", .kind = REPORT_JOULES},
	{.key = "energy_change_w", .kind = REPORT_WATTS},
	{.key = "time_p", .kind = REPORT_NUMBER},
	{.key = "energy_p", .kind = REPORT_NUMBER},
};
static const struct report_shape total_shape = REPORT_SHAPE(total_columns);

static const struct report_column columns[] = {
	{.key = "format", .kind = REPORT_TEXT},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "sonde_version", .kind = REPORT_TEXT},
	{.key = "by", .kind = REPORT_TEXT},
	{.key = "compared", .kind = REPORT_TEXT, .help = "self, total"},
	{.key = "before", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "after", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "total", .kind = REPORT_OBJECT, .shape = &total_shape},
	{.key = "rows_total", .kind = REPORT_COUNT},
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
	{.key = "device_work", .kind = REPORT_OBJECT, .shape = &diff_device_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &shape};

/* ---- figures ---- */

static void add_side(struct result *result, const struct diff *diff, const char *path,
	const struct diff_side *side)
{
	result_open(result);
	result_text(result, path);
	result_known(result, !diff->is_energy, side->samples);
	result_u64(result, side->duration_ns);
	result_known(result, diff->has_time && !diff->is_energy, side->cpu_time_ns);
	result_number(result, diff->is_energy ? side->energy_j : NAN);
	result_number(result, side->lost_share);
	result_close(result);
}

/* A value in the one of two columns that energy, or time, has. */
static void add_number_of(struct result *result, bool is_second, double value)
{
	result_number(result, is_second ? NAN : value);
	result_number(result, is_second ? value : NAN);
}

static void add_seconds(struct result *result, const struct diff *diff, double change)
{
	add_number_of(result, diff->options.per_second, diff->is_energy ? NAN : change);
}

static void add_joules(struct result *result, const struct diff *diff, double change)
{
	add_number_of(result, diff->options.per_second, diff->is_energy ? change : NAN);
}

static void add_total(struct result *result, const struct diff *diff)
{
	result_open(result);
	add_seconds(result, diff, diff->total_time_change);
	add_joules(result, diff, diff->total_time_change);
	add_number_of(result, diff->is_energy, diff->total_time_p);
	result_close(result);
}

static const char *stars(double q)
{
	return q <= 0.001 ? "***" : q <= 0.01 ? "**" : q <= DIFF_SIGNIFICANT ? "*" : NULL;
}

static void add_counts(struct result *result, const struct diff *diff, const struct diff_row *row)
{
	const uint64_t counts[] = {
		row->self_before, row->self_after, row->total_before, row->total_after};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		result_known(result, !diff->is_energy, counts[i]);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		result_known(result, diff->is_energy, counts[i]);
}

static void add_row(struct result *result, const struct diff *diff, const struct diff_row *row)
{
	bool by_function = diff->options.by == BREAKDOWN_FUNCTION;
	double q = diff->has_time ? row->time_q : row->share_q;
	double change = diff->is_energy ? NAN : row->time_change;

	/* In ns, or in ms a second. */
	result_number(result, diff->options.per_second ? NAN : change * NS_PER_S);
	result_number(result, diff->options.per_second ? change * 1e3 : NAN);
	add_seconds(result, diff, row->time_change);
	add_joules(result, diff, row->time_change);
	result_number(result, 100 * row->share_change);
	result_number(result, row->share_change);
	result_share(result, (double)diff_row_before(diff, row), (double)diff->before.samples);
	result_share(result, (double)diff_row_after(diff, row), (double)diff->after.samples);
	result_number(result, q);
	result_text(result, stars(q));
	add_number_of(result, diff->is_energy, row->time_q);
	result_number(result, row->share_q);
	result_flag(result, diff_row_is_significant(diff, row));
	add_counts(result, diff, row);
	result_text(result, row->name);
	result_text(result, row->name);
	result_text(result, by_function ? row->module : NULL);
}

size_t diff_report_wanted(const struct diff_report *report, size_t count)
{
	size_t limit = report->limit ? report->limit : report->is_json ? count : DIFF_DEFAULT_LIMIT;

	return MIN(limit, count);
}

static bool fits(const struct diff_report *report, const struct diff_row *row)
{
	return report->is_json || report->all || diff_row_is_significant(report->diff, row);
}

static size_t count_fitting(const struct diff_report *report)
{
	size_t count = 0;

	array_foreach (&report->diff->rows, row)
		count += fits(report, row);
	return count;
}

static uint32_t add_rows(struct result *result, const struct diff_report *report)
{
	size_t left = diff_report_wanted(report, count_fitting(report));
	uint32_t rows = result_open(result);

	array_foreach (&report->diff->rows, row) {
		if (left && fits(report, row)) {
			add_row(result, report->diff, row);
			left--;
		}
	}
	result_close(result);
	return rows;
}

/* ---- sentences ---- */

static void say_side(struct result *result, const char *which, const char *path,
	const struct diff *diff, const struct diff_side *side)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "%s %s: ", which, path);
	if (diff->is_energy) {
		format_energy(&text, side->energy_j);
		strbuf_add(&text, ", ");
	}
	if (diff->has_time && !diff->is_energy) {
		format_duration(&text, side->cpu_time_ns);
		strbuf_add(&text, " of CPU time, ");
	}
	if (!diff->is_energy) {
		format_count(&text, side->samples);
		strbuf_add(&text, " samples, ");
	}
	format_duration(&text, side->duration_ns);
	strbuf_add(&text, " recorded");
	result_say(result, 0, &text);
}

void diff_add_time_change(struct strbuf *out, bool per_second, double seconds)
{
	if (per_second)
		strbuf_addf(out, "%+.3g ms/s", 1e3 * seconds);
	else
		format_duration_change(out, seconds);
}

static void add_change(struct strbuf *out, const struct diff *diff, double change)
{
	if (!diff->is_energy) {
		diff_add_time_change(out, diff->options.per_second, change);
		return;
	}
	if (diff->options.per_second) {
		strbuf_addf(out, "%+.3g W", change);
		return;
	}
	strbuf_add(out, change < 0 ? "" : "+");
	format_energy(out, change);
}

static void say_total(struct result *result, const struct diff *diff)
{
	double before = (double)diff->before.samples * diff->before.sample_weight;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!diff->has_time) {
		result_sentence(result, 0,
			"CPU times are unknown: the captures do not say how much time a sample "
			"stands for. Shares are compared.");
		return;
	}
	strbuf_add(&text, diff->is_energy            ? "Energy: "
			  : diff->options.per_second ? "CPU time per second: "
						     : "CPU time: ");
	add_change(&text, diff, diff->total_time_change);
	strbuf_addf(&text, " (%+.2f %%), p = %.2g%s", 100 * diff->total_time_change / before,
		diff->total_time_p,
		diff->total_time_p <= DIFF_SIGNIFICANT ? "" : ", not significant");
	result_say(result, 0, &text);
}

static void say_caution(struct result *result, const char *path, double lost_share)
{
	if (lost_share >= LOSS_TO_SAY)
		result_sentencef(result, 2,
			"Caution: %.1f %% of the samples of %s were lost, so that its CPU times "
			"are too small; compare shares, or record again at a lower frequency "
			"(sonde record -F).",
			100 * lost_share, path);
}

static void show_rows(struct result *result, const struct diff_report *report, uint32_t rows)
{
	enum breakdown_by by = report->diff->options.by;
	const char *what = breakdown_by_to_string(by);
	size_t fitting = count_fitting(report);
	size_t others = report->diff->rows.count - fitting;

	result_lines(result, "\n");
	if (!fitting)
		result_sentencef(result, 0, "No %s changed significantly.", what);
	result_show(result, rows,
		&(struct result_show){.left_out = fitting - diff_report_wanted(report, fitting),
			.noun = by == BREAKDOWN_FUNCTION ? "functions" : "modules",
			.view = by == BREAKDOWN_FUNCTION ? FUNCTIONS : MODULES});
	if (others)
		result_sentencef(result, 0,
			"%zu %s%s did not change significantly (--all shows them).", others, what,
			others == 1 ? "" : "s");
}

/* ---- all of it ---- */

static void show(struct result *result, const struct diff_report *report, uint32_t rows,
	uint32_t device_rows)
{
	const struct diff *diff = report->diff;

	say_side(result, "A", report->before_path, diff, &diff->before);
	say_side(result, "B", report->after_path, diff, &diff->after);
	say_total(result, diff);
	say_caution(result, report->before_path, diff->before.lost_share);
	say_caution(result, report->after_path, diff->after.lost_share);
	show_rows(result, report, rows);
	if (report->device)
		diff_show_device(result, report, device_rows);
	if (!report->why_no_device)
		return;
	result_lines(result, "\n");
	result_sentencef(result, 0, "Device work is not compared: %s.", report->why_no_device);
}

int diff_report_make(struct result *result, const struct diff_report *report)
{
	const struct diff *diff = report->diff;
	uint32_t rows, device_rows = 0;

	result->column = &document;
	result_open(result);
	result_text(result, "sonde-diff");
	result_u64(result, VERSION);
	result_text(result, SONDE_VERSION);
	result_text(result, breakdown_by_to_string(diff->options.by));
	result_text(result, diff->options.sort == BREAKDOWN_SORT_SELF ? "self" : "total");
	add_side(result, diff, report->before_path, &diff->before);
	add_side(result, diff, report->after_path, &diff->after);
	add_total(result, diff);
	result_u64(result, diff->rows.count);
	rows = add_rows(result, report);
	if (report->device)
		device_rows = diff_add_device(result, report);
	else
		result_null(result);
	result_close(result);
	show(result, report, rows, device_rows);
	return result_status(result);
}
