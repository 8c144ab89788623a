/* SPDX-License-Identifier: Apache-2.0 */
#include "report/runs/regress.h"

#include <math.h>

#include "report/render.h"

#define VERSION       2
#define DEFAULT_LIMIT 20

/* Of CPU time, or energy of programs, the mean; of others the median. */
static const struct report_column side_columns[] = {
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "median_ns", .kind = REPORT_NS},
	{.key = "mean_ns", .kind = REPORT_NS},
	{.key = "low_ns", .kind = REPORT_NS},
	{.key = "high_ns", .kind = REPORT_NS},
	{.key = "median_j", .kind = REPORT_JOULES},
	{.key = "mean_j", .kind = REPORT_JOULES},
	{.key = "low_j", .kind = REPORT_JOULES},
	{.key = "high_j", .kind = REPORT_JOULES},
};
static const struct report_shape side_shape = REPORT_SHAPE(side_columns);

/* Tables: of times, of joules. */
enum { TIMES, JOULES };
#define BOTH (1U << TIMES | 1U << JOULES)

static const struct report_column row_columns[] = {
	{.title = "Change",
		.kind = REPORT_SHARE,
		.views = BOTH,
		.decimals = 1,
		.is_change = true,
		.unknown = "?"},
	{.title = "Before", .kind = REPORT_NS, .views = 1U << TIMES},
	{.title = "After", .kind = REPORT_NS, .views = 1U << TIMES},
	{.title = "Before", .kind = REPORT_JOULES, .views = 1U << JOULES},
	{.title = "After", .kind = REPORT_JOULES, .views = 1U << JOULES},
	{.title = "Count", .kind = REPORT_COUNT, .views = BOTH},
	{.title = "After", .kind = REPORT_COUNT, .views = BOTH},
	{.key = "change_percent", .kind = REPORT_NUMBER, .help = "null: before it was 0"},
	{.key = "verdict", .title = "Verdict", .kind = REPORT_TEXT, .views = BOTH},
	{.key = "kind", .kind = REPORT_TEXT},
	{.title = "What", .kind = REPORT_TEXT, .views = BOTH, .is_dim = true},
	{.key = "domain",
		.title = "Domain",
		.kind = REPORT_TEXT,
		.views = BOTH,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "name",
		.title = "Name",
		.kind = REPORT_TEXT,
		.views = BOTH,
		.is_name = true,
		.shrinks_to = 28},
	{.key = "before", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "after", .kind = REPORT_OBJECT, .shape = &side_shape},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column path_columns[] = {{.kind = REPORT_TEXT}};
static const struct report_shape path_shape = REPORT_SHAPE(path_columns);

static const struct report_column columns[] = {
	{.key = "format", .kind = REPORT_TEXT},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "sonde_version", .kind = REPORT_TEXT},
	{.key = "baselines", .kind = REPORT_LIST, .shape = &path_shape},
	{.key = "captures", .kind = REPORT_LIST, .shape = &path_shape},
	{.key = "threshold_percent", .kind = REPORT_NUMBER},
	{.key = "noise_false_alarm_rate", .kind = REPORT_NUMBER},
	{.key = "run_false_alarm_rate", .kind = REPORT_NUMBER},
	{.key = "compared", .kind = REPORT_TEXT},
	{.key = "shorter_than_sensor", .kind = REPORT_COUNT},
	{.key = "judged", .kind = REPORT_COUNT},
	{.key = "blocks", .kind = REPORT_COUNT},
	{.key = "slower", .kind = REPORT_COUNT},
	{.key = "only_in_baseline", .kind = REPORT_COUNT},
	{.key = "only_in_capture", .kind = REPORT_COUNT},
	{.key = "rows", .total = "rows_total", .kind = REPORT_ROWS, .shape = &row_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &shape};

const char *regress_report_kind(const struct regress *regress, enum regress_kind kind)
{
	return regress->is_energy && kind == REGRESS_CPU ? "programs"
							 : regress_kind_to_string(kind);
}

/* ---- figures ---- */

/* `times` are nanojoules where energy is compared. */
static void add_side(struct result *result, const struct regress_side *side, enum regress_kind kind,
	bool is_energy)
{
	bool is_mean = kind == REGRESS_CPU;

	result_open(result);
	result_u64(result, side->count);
	result_known(result, !is_energy && !is_mean, side->median_ns);
	result_known(result, !is_energy && is_mean, side->median_ns);
	result_known(result, !is_energy, side->low_ns);
	result_known(result, !is_energy, side->high_ns);
	result_number(result, is_energy && !is_mean ? (double)side->median_ns / 1e9 : NAN);
	result_number(result, is_energy && is_mean ? (double)side->median_ns / 1e9 : NAN);
	result_number(result, is_energy ? (double)side->low_ns / 1e9 : NAN);
	result_number(result, is_energy ? (double)side->high_ns / 1e9 : NAN);
	result_close(result);
}

static void add_row(
	struct result *result, const struct regress *regress, const struct regress_row *row)
{
	result_number(result, row->change_percent / 100);
	result_u64(result, row->before.median_ns);
	result_u64(result, row->after.median_ns);
	result_number(result, (double)row->before.median_ns / 1e9);
	result_number(result, (double)row->after.median_ns / 1e9);
	result_u64(result, row->before.count);
	result_u64(result, row->after.count);
	result_number(result, row->change_percent);
	result_text(result, regress_verdict_name(regress, row->verdict));
	result_text(result, regress->is_energy && row->kind == REGRESS_CPU
				    ? "energy"
				    : regress_kind_to_string(row->kind));
	result_text(result, regress_report_kind(regress, row->kind));
	result_text(result, row->domain);
	result_text(result, row->name);
	add_side(result, &row->before, row->kind, regress->is_energy);
	add_side(result, &row->after, row->kind, regress->is_energy);
}

static void add_paths(struct result *result, const char *const *paths, size_t count)
{
	result_open(result);
	for (size_t i = 0; i < count; i++)
		result_text(result, paths[i]);
	result_close(result);
}

static void add_all(struct result *result, const struct regress_report *report)
{
	const struct regress *regress = report->regress;

	result_text(result, "sonde-regress");
	result_u64(result, VERSION);
	result_text(result, SONDE_VERSION);
	add_paths(result, report->baselines, report->baseline_count);
	add_paths(result, report->captures, report->capture_count);
	result_number(result, report->threshold_percent);
	result_number(result, REGRESS_FALSE_ALARM);
	result_number(result, regress->run_chance);
	result_text(result, regress->is_energy ? "energy" : "time");
	result_known(result, regress->is_energy, regress->too_short);
	result_u64(result, regress->judged);
	result_u64(result, regress->blocks);
	result_u64(result, regress->slower);
	result_u64(result, regress->only_before);
	result_u64(result, regress->only_after);
}

/* ---- sentences ---- */

static void name_paths(struct strbuf *out, const char *const *paths, size_t count)
{
	strbuf_add(out, paths[0]);
	if (count > 1)
		strbuf_addf(out, " and %zu more", count - 1);
}

static void say_what(struct result *result, const struct regress_report *report)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	name_paths(&text, report->captures, report->capture_count);
	strbuf_add(&text, " against the baseline ");
	name_paths(&text, report->baselines, report->baseline_count);
	strbuf_addf(&text, ": medians of %s from %g %% and outside of their spread on",
		report->regress->is_energy ? "energy, more" : "durations, slower",
		report->threshold_percent);
	result_say(result, 0, &text);
	result_lines(result, "\n");
}

static void say_counts(struct result *result, const struct regress *regress)
{
	if (regress->only_before + regress->only_after)
		result_sentencef(result, 0,
			"Not compared: %zu only in the baseline, %zu only in the new recording.",
			regress->only_before, regress->only_after);
	if (regress->too_short)
		result_sentencef(result, 0,
			"shorter_than_sensor: %zu steps and ranges have no figure of energy.",
			regress->too_short);
	if (regress->judged < regress->rows.count)
		result_sentencef(result, 0,
			"too_few: fewer than %u values on a side; too_small: less than %d %% of "
			"the time of its kind. Neither is judged.",
			MAX(REGRESS_MIN_VALUES, 2 * regress->blocks), REGRESS_MIN_PERCENT);
}

/* What a failure can be, other than a slower program. */
static void say_chances(struct result *result, const struct regress_report *report)
{
	result_lines(result, "\n");
	result_sentencef(result, 0,
		"At most %g %% of comparisons of equal programs fail because of noise within "
		"recordings. If entire runs differ by more than the threshold, as on a machine "
		"with other work, %zu against %zu fail once in %.0f.",
		100 * REGRESS_FALSE_ALARM, report->capture_count, report->baseline_count,
		1 / report->regress->run_chance);
	if (report->regress->run_chance > REGRESS_FALSE_ALARM)
		result_advise(result,
			&(struct result_advice){
				.id = "more_recordings", .saves_ns = REPORT_SAVES_UNKNOWN},
			"Give more recordings: --regress A1 --regress A2 ... B1 B2 ..., five of "
			"each make it once in 252.");
}

int regress_report_make(struct result *result, const struct regress_report *report)
{
	const struct regress *regress = report->regress;
	size_t count = regress->rows.count;
	size_t filled = report->limit ? MIN(report->limit, count) : count;
	uint32_t rows;

	result->column = &document;
	result_open(result);
	add_all(result, report);
	rows = result_open(result);
	result_leave_out(result, count - filled);
	for (size_t i = 0; i < filled; i++)
		add_row(result, regress, &regress->rows.items[i]);
	result_close(result);
	result_close(result);
	say_what(result, report);
	result_show(result, rows,
		&(struct result_show){.limit = report->limit ? report->limit : DEFAULT_LIMIT,
			.noun = "rows",
			.view = regress->is_energy ? JOULES : TIMES});
	say_counts(result, regress);
	say_chances(result, report);
	if (report->left_out)
		result_sentence(result, 0, report->left_out);
	return result_status(result);
}

int regress_report_schema(struct strbuf *out)
{
	return report_render_schema_document(&shape, "sonde report --regress --json", out);
}
