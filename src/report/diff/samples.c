/* SPDX-License-Identifier: Apache-2.0 */
/* What changed in samples: functions, modules or lines, by the time of a weight, or energy. */
#include <ctype.h>
#include <math.h>

#include "model/format.h"
#include "model/weigh.h"
#include "report/diff/internal.h"

/* Share of lost samples from which on times cannot be compared well. */
#define LOSS_TO_SAY 0.01

/* Tables: of functions, of modules, of lines. */
enum { FUNCTIONS, MODULES, LINES };
#define OF_FUNCTIONS (1U << FUNCTIONS)
#define OF_MODULES   (1U << MODULES)
#define OF_LINES     (1U << LINES)
#define BOTH         (OF_FUNCTIONS | OF_MODULES | OF_LINES)

#define CHANGE(of_key, name, of_kind, ...)                                                         \
	{                                                                                          \
		.key = (of_key), .title = (name), .kind = (of_kind), .views = BOTH,                \
		.is_change = true, .hide = REPORT_HIDE_UNKNOWN, __VA_ARGS__                        \
	}

#define UNCERTAINTY(of_key, of_kind, ...)                                                          \
	{                                                                                          \
		.key = (of_key), .title = "±", .kind = (of_kind), .views = BOTH,                   \
		.hide = REPORT_HIDE_UNKNOWN, __VA_ARGS__                                           \
	}

/* Of energy, samples and times are null; of time, what is of energy. */
#define CHANGE_COLUMNS                                                                             \
	CHANGE("time_change_ns", "Time", REPORT_NS),                                               \
		CHANGE("time_change_ns_per_s", "Time/s", REPORT_NS, .help = "with --per-second"),  \
		CHANGE("energy_change_j", "Energy", REPORT_JOULES),                                \
		CHANGE("energy_change_w", "Power", REPORT_WATTS, .help = "with --per-second"),     \
		UNCERTAINTY("energy_change_uncertainty_j", REPORT_JOULES,                          \
			.help = "one standard uncertainty"),                                       \
		UNCERTAINTY(                                                                       \
			"energy_change_uncertainty_w", REPORT_WATTS, .help = "with --per-second"), \
	{                                                                                          \
		.key = "energy_uncertainty_reason", .kind = REPORT_TEXT,                           \
		.help = "why it is not known: shorter_than_sensor, time_share, "                   \
			"sensor_error_not_known"                                                   \
	}

static const struct report_column row_columns[] = {
	CHANGE_COLUMNS,
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
	{.key = "self_time_ns_before", .kind = REPORT_NS},
	{.key = "self_time_ns_after", .kind = REPORT_NS},
	{.key = "total_time_ns_before", .kind = REPORT_NS},
	{.key = "total_time_ns_after", .kind = REPORT_NS},
	{.key = "self_energy_uj_before", .kind = REPORT_COUNT},
	{.key = "self_energy_uj_after", .kind = REPORT_COUNT},
	{.key = "total_energy_uj_before", .kind = REPORT_COUNT},
	{.key = "total_energy_uj_after", .kind = REPORT_COUNT},
	{.key = "name",
		.title = "Function",
		.kind = REPORT_TEXT,
		.views = OF_FUNCTIONS | OF_LINES,
		.is_name = true,
		.shrinks_to = 28},
	{.key = "place",
		.title = "Line",
		.kind = REPORT_TEXT,
		.views = OF_LINES,
		.shrinks_to = 16,
		.help = "of --by line: file name and line; null: the line is not known"},
	{.title = "Module", .kind = REPORT_TEXT, .views = OF_MODULES, .shrinks_to = 16},
	{.key = "module",
		.title = "Module",
		.kind = REPORT_TEXT,
		.views = OF_FUNCTIONS | OF_LINES,
		.is_dim = true,
		.shrinks_to = 10,
		.largest = 24,
		.help = "of functions and lines"},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column side_columns[] = {
	{.key = "samples", .kind = REPORT_COUNT, .help = "of the weight cpu"},
	{.key = "duration_ns", .kind = REPORT_NS},
	{.key = "cpu_time_ns", .kind = REPORT_NS, .help = "of the weight cpu"},
	{.key = "time_ns", .kind = REPORT_NS, .help = "of the weight; null of energy"},
	{.key = "energy_j", .kind = REPORT_JOULES},
	{.key = "lost_share", .kind = REPORT_SHARE},
};
static const struct report_shape side_shape = REPORT_SHAPE(side_columns);

static const struct report_column total_columns[] = {
	CHANGE_COLUMNS,
	{.key = "time_p", .kind = REPORT_NUMBER},
	{.key = "energy_p", .kind = REPORT_NUMBER},
};
static const struct report_shape total_shape = REPORT_SHAPE(total_columns);

static const struct report_column columns[] = {
	{.key = "by", .kind = REPORT_TEXT},
	{.key = "weight", .kind = REPORT_TEXT, .help = "cpu, gpu, energy and so on"},
	{.key = "compared", .kind = REPORT_TEXT, .help = "self, total"},
	{.key = "before", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "after", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "total", .kind = REPORT_OBJECT, .shape = &total_shape},
	{.key = "rows_total", .kind = REPORT_COUNT},
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
};
const struct report_shape diff_samples_shape = REPORT_SHAPE(columns);

/* ---- figures ---- */

/* Samples are of CPU time alone: by other weights they count nanoseconds, or microjoules. */
static bool counts_samples(const struct diff *diff)
{
	return diff->options.weight == MODEL_WEIGHT_CPU && !diff->is_energy;
}

static bool has_times(const struct diff *diff)
{
	return diff->has_time && !diff->is_energy;
}

static void add_side(struct result *result, const struct diff *diff, const struct diff_side *side)
{
	result_open(result);
	result_known(result, counts_samples(diff), side->samples);
	result_u64(result, side->duration_ns);
	result_known(result, has_times(diff) && counts_samples(diff), side->time_ns);
	result_known(result, has_times(diff), side->time_ns);
	result_number(result, diff->is_energy ? side->energy_j : NAN);
	result_number(result, side->lost_share);
	result_close(result);
}

/* Fills in those of CHANGE_COLUMNS that are compared. */
static void add_change(struct result *result, const struct diff *diff, double change,
	const struct energy_uncertainty *before, const struct energy_uncertainty *after)
{
	struct energy_uncertainty uncertainty = ENERGY_NO_UNCERTAINTY;

	bool per_second = diff->options.per_second;
	double ns = diff->is_energy ? NAN : change * NS_PER_S,
	       joules = diff->is_energy ? change : NAN;

	result_number(result, per_second ? NAN : ns);
	result_number(result, per_second ? ns : NAN);
	result_number(result, per_second ? NAN : joules);
	result_number(result, per_second ? joules : NAN);
	if (diff->is_energy)
		uncertainty = diff_change_uncertainty(diff, before, after);
	result_number(result, per_second ? NAN : uncertainty.energy_j);
	result_number(result, per_second ? uncertainty.energy_j : NAN);
	result_text(result, energy_doubt_name(uncertainty.doubt));
}

/* In the column of times, or of energy. */
static void add_chance(struct result *result, const struct diff *diff, double chance)
{
	result_number(result, diff->is_energy ? NAN : chance);
	result_number(result, diff->is_energy ? chance : NAN);
}

static const char *stars(double q)
{
	return q <= 0.001 ? "***" : q <= 0.01 ? "**" : q <= DIFF_SIGNIFICANT ? "*" : NULL;
}

static void add_counts(struct result *result, const struct diff *diff, const struct diff_row *row)
{
	const uint64_t counts[] = {
		row->self_before, row->self_after, row->total_before, row->total_after};

	const uint64_t ns[] = {diff->before.unit_ns, diff->after.unit_ns};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		result_known(result, counts_samples(diff), counts[i]);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		result_known(result, has_times(diff), counts[i] * ns[i % 2]);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		result_known(result, diff->is_energy, counts[i]);
}

static void add_row(struct result *result, const struct diff *diff, const struct diff_row *row)
{
	bool by_module = diff->options.by == BREAKDOWN_MODULE;
	double q = diff->has_time ? row->time_q : row->share_q;

	add_change(
		result, diff, row->time_change, &row->before_uncertainty, &row->after_uncertainty);
	result_number(result, 100 * row->share_change);
	result_number(result, row->share_change);
	result_share(result, (double)diff_row_before(diff, row), (double)diff->before.samples);
	result_share(result, (double)diff_row_after(diff, row), (double)diff->after.samples);
	result_number(result, q);
	result_text(result, stars(q));
	add_chance(result, diff, row->time_q);
	result_number(result, row->share_q);
	result_flag(result, diff_row_is_significant(diff, row));
	add_counts(result, diff, row);
	result_text(result, row->name);
	result_text(result, *row->place ? row->place : NULL);
	result_text(result, row->name);
	result_text(result, by_module ? NULL : row->module);
}

struct diff_rows diff_add_samples(struct result *result, const struct diff_report *report)
{
	const struct diff *diff = report->samples;
	struct diff_rows rows = {0};

	result_open(result);
	result_text(result, breakdown_by_to_string(diff->options.by));
	result_text(result, model_weight_to_string(diff->options.weight));
	result_text(result, diff->options.sort == BREAKDOWN_SORT_SELF ? "self" : "total");
	add_side(result, diff, &diff->before);
	add_side(result, diff, &diff->after);
	result_open(result);
	add_change(result, diff, diff->total_time_change, &diff->before.uncertainty,
		&diff->after.uncertainty);
	add_chance(result, diff, diff->total_time_p);
	result_close(result);
	result_u64(result, diff->rows.count);
	rows.table = result_open(result);
	array_foreach (&diff->rows, row) {
		if (diff_takes_row(&rows, result, report, diff_row_is_significant(diff, row)))
			add_row(result, diff, row);
	}
	result_close(result);
	result_close(result);
	return rows;
}

/* ---- sentences ---- */

void diff_say_samples_of(struct strbuf *out, const struct diff *diff, const struct diff_side *side)
{
	if (diff->is_energy) {
		format_energy(out, side->energy_j);
		strbuf_add(out, ", ");
	}
	if (has_times(diff)) {
		format_duration(out, side->time_ns);
		strbuf_addf(out, " of %s, ", model_weight_noun(diff->options.weight));
	}
	if (counts_samples(diff)) {
		format_count(out, side->samples);
		strbuf_addf(out, " samples%s", side->has_duration ? ", " : "");
	}
	if (!side->has_duration)
		return;
	format_duration(out, side->duration_ns);
	strbuf_add(out, " recorded");
}

static void say_change(struct strbuf *out, const struct diff *diff, double change)
{
	if (!diff->is_energy) {
		diff_add_time_change(out, diff->options.per_second, change * NS_PER_S);
		return;
	}
	if (diff->options.per_second) {
		strbuf_addf(out, "%+.3g W", change);
		return;
	}
	strbuf_add(out, change < 0 ? "" : "+");
	format_energy(out, change);
}

/* "Device time per second: +3 ms/s". */
static void say_total(struct result *result, const struct diff *diff)
{
	const char *noun = model_weight_noun(diff->options.weight);
	double before = (double)diff->before.samples * diff->before.sample_weight;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!diff->has_time) {
		result_sentence(result, 0,
			"CPU times are unknown: the captures do not say how much time a sample "
			"stands for. Shares are compared.");
		return;
	}
	strbuf_addf(&text, "%c%s%s: ", toupper(noun[0]), noun + 1,
		diff->options.per_second && !diff->is_energy ? " per second" : "");
	say_change(&text, diff, diff->total_time_change);
	strbuf_addf(&text, " (%+.2f %%), p = %.2g%s", 100 * diff->total_time_change / before,
		diff->total_time_p,
		diff->total_time_p <= DIFF_SIGNIFICANT ? "" : ", not significant");
	result_say(result, 0, &text);
}

/* What waits and devices took is measured, not sampled. */
static bool is_sampled(const struct diff *diff)
{
	enum model_weight weight = diff->options.weight;

	return weight != MODEL_WEIGHT_WAIT && weight != MODEL_WEIGHT_GPU &&
	       weight != MODEL_WEIGHT_GPU_IDLE;
}

static void say_caution(
	struct result *result, const struct diff *diff, const char *path, double lost_share)
{
	if (is_sampled(diff) && lost_share >= LOSS_TO_SAY)
		result_sentencef(result, 2,
			"Caution: %.1f %% of the samples of %s were lost, so that its CPU times "
			"are too small; compare shares, or record again at a lower frequency "
			"(sonde record -F).",
			100 * lost_share, path);
}

void diff_show_samples(
	struct result *result, const struct diff_report *report, const struct diff_rows *rows)
{
	const struct diff *diff = report->samples;
	static const struct result_show views[] = {
		[BREAKDOWN_FUNCTION] = {.noun = "functions", .view = FUNCTIONS},
		[BREAKDOWN_MODULE] = {.noun = "modules", .view = MODULES},
		[BREAKDOWN_LINE] = {.noun = "lines", .view = LINES},
	};
	const char *what = breakdown_by_to_string(diff->options.by);

	say_total(result, diff);
	say_caution(result, diff, report->paths[0], diff->before.lost_share);
	say_caution(result, diff, report->paths[1], diff->after.lost_share);
	result_lines(result, "\n");
	if (!rows->fitting)
		result_sentencef(result, 0, "No %s changed significantly.", what);
	result_show(result, rows->table, &views[diff->options.by]);
	if (rows->others)
		result_sentencef(result, 0,
			"%zu %s%s did not change significantly (--all shows them).", rows->others,
			what, rows->others == 1 ? "" : "s");
}
