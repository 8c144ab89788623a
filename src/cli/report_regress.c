/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_regress.h"

#include <errno.h>
#include <math.h>

#include "analyses/cpu/regress.h"
#include "base/escape.h"
#include "base/text.h"
#include "cli/command.h"
#include "model/format.h"
#include "report/runs/regress_json.h"
#include "report/table.h"

#define DEFAULT_LIMIT 20

/* What a recording's energy went to. */
struct joules {
	struct energy_use use;
	struct span_energy *spans;
};

static void joules_free(struct joules *joules)
{
	span_energy_free(joules->spans);
	energy_use_done(&joules->use);
	free(joules);
}

/* The recordings of one side. */
struct side {
	const char *const *paths;
	ARRAY_OF(struct model *) models;
	ARRAY_OF(struct joules *) joules;
	struct regress_recordings recordings;
};

static void side_done(struct side *side)
{
	array_foreach (&side->models, model)
		model_freep(model);
	array_done(&side->models);
	array_foreach (&side->joules, joules)
		joules_free(*joules);
	array_done(&side->joules);
	array_done(&side->recordings.items);
}

/* In place of time: the recording's energy, and what a sample has of it on average. */
static int compare_energy(struct side *side, struct model *model, const char *path,
	const struct selection *selection, struct regress_recording *recording, struct errmsg *err)
{
	struct joules *joules = calloc(1, sizeof(*joules));
	int r;

	if (!joules || array_append(&side->joules, joules) < 0) {
		free(joules);
		return errmsg_set(err, -ENOMEM, "memory ran out while reading %s", path);
	}
	r = charge_energy(model, selection, &joules->use, err);
	if (r < 0)
		return r;
	if (!energy_use_has_any(&joules->use))
		return errmsg_set(err, -ENODATA,
			"--weight energy: %s has no energy: record with --energy auto; sonde "
			"report says why it was not measured",
			path);
	if (span_energy_new(&joules->spans, model, &joules->use) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while reading %s", path);
	recording->energy = joules->spans;
	recording->period_s =
		recording->samples ? joules->use.attributed_j / (double)recording->samples : 0;
	return 0;
}

static int load_one(struct side *side, const char *path, const struct shown_options *shown,
	const struct selection *selection, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_model_ struct model *model = NULL;
	struct regress_recording recording;
	int r = load_capture(path, shown, selection, &model, err);

	r = r ?: selection_apply(selection, model, &selected, err);
	if (r < 0)
		return r;
	recording = (struct regress_recording){
		.model = model,
		.samples = selected.count,
		.period_s = model_has_time(model) ? (double)model_sample_weight_ns(model) / 1e9 : 0,
	};
	if (shown_weight(shown) == MODEL_WEIGHT_ENERGY)
		r = compare_energy(side, model, path, selection, &recording, err);
	r = r ?: selection_narrow(selection, model, err);
	if (r < 0)
		return r;
	if (array_append(&side->models, model) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while reading %s", path);
	TAKE_PTR(model);
	if (array_append(&side->recordings.items, recording) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while reading %s", path);
	return 0;
}

static int side_load(struct side *side, const char *const *paths, size_t count,
	const struct shown_options *shown, const struct selection *selection, struct errmsg *err)
{
	int r = 0;

	side->paths = paths;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = load_one(side, paths[i], shown, selection, err);
	return r;
}

static int compare(struct regress *regress, double threshold_percent, const struct side *before,
	const struct side *after, struct errmsg *err)
{
	int r = regress_init(regress, threshold_percent, &before->recordings, &after->recordings);

	if (r < 0)
		return errmsg_set(err, r, "memory ran out while comparing");
	if (!regress->rows.count) {
		regress_done(regress);
		return errmsg_set(err, -ENODATA,
			"%s and %s have nothing in common to compare: no samples, steps, ranges or "
			"device work of the same names",
			before->paths[0], after->paths[0]);
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

static void add_median(struct table *table, const struct regress *regress, uint64_t median)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!regress->is_energy) {
		table_duration(table, median);
		return;
	}
	format_energy(&text, (double)median / 1e9);
	table_cell(table, strbuf_cstr(&text));
}

static const char *kind_name(const struct regress *regress, enum regress_kind kind)
{
	return regress->is_energy && kind == REGRESS_CPU ? "programs"
							 : regress_kind_to_string(kind);
}

static void add_row(
	struct table *table, const struct regress *regress, const struct regress_row *row)
{
	_cleanup_strbuf_ struct strbuf name = {0};

	table_cellf(table, "%+.1f %%", row->change_percent);
	add_median(table, regress, row->before.median_ns);
	add_median(table, regress, row->after.median_ns);
	table_cellf(table, "%llu, %llu", (unsigned long long)row->before.count,
		(unsigned long long)row->after.count);
	table_cell(table, regress_verdict_name(regress, row->verdict));
	table_cell(table, kind_name(regress, row->kind));
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
	if (regress->too_short)
		strbuf_addf(out,
			"shorter_than_sensor: %zu steps and ranges have no figure of energy.\n",
			regress->too_short);
	if (regress->judged < regress->rows.count)
		strbuf_addf(out,
			"too_few: fewer than %u values on a side; too_small: less than %d %% of "
			"the time of its kind. Neither is judged.\n",
			MAX(REGRESS_MIN_VALUES, 2 * regress->blocks), REGRESS_MIN_PERCENT);
}

static void add_paths(struct strbuf *out, const char *const *paths, size_t count)
{
	escape_plain(out, paths[0]);
	if (count > 1)
		strbuf_addf(out, " and %zu more", count - 1);
}

/* What a failure can be, other than a slower program. */
static void add_chances(
	struct strbuf *out, const struct regress *regress, size_t before, size_t after)
{
	strbuf_addf(out,
		"\nOf equal programs at most %g %% fail by noise within recordings. Where whole "
		"runs "
		"differ by more than the threshold, as on a machine with other work, %zu against "
		"%zu fail once in %.0f.%s\n",
		100 * REGRESS_FALSE_ALARM, after, before, 1 / regress->run_chance,
		regress->run_chance > REGRESS_FALSE_ALARM
			? " Give more recordings: --regress A1 --regress A2 ... B1 B2 ..., five of "
			  "each make it once in 252."
			: "");
}

static int write_text(const struct regress *regress, const struct regress_arguments *arguments,
	const char *const *paths, size_t path_count, struct strbuf *out)
{
	struct terminal terminal = terminal_of(stdout);
	size_t limit = arguments->limit ?: DEFAULT_LIMIT, count = regress->rows.count;
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	int r;

	add_paths(out, paths, path_count);
	strbuf_add(out, " against the baseline ");
	add_paths(out, arguments->baselines, arguments->baseline_count);
	strbuf_addf(out, ": medians of %s from %g %% and outside of their spread on\n\n",
		regress->is_energy ? "energy, more" : "durations, slower",
		arguments->threshold_percent);
	for (size_t i = 0; i < MIN(limit, count); i++)
		add_row(&table, regress, &regress->rows.items[i]);
	r = table_print(&table, &terminal, out);
	add_counts(out, regress, count - MIN(limit, count));
	add_chances(out, regress, arguments->baseline_count, path_count);
	return r ?: strbuf_status(out);
}

/* The sentence that a log of CI needs. */
static void say_slower(const struct regress *regress, const struct regress_arguments *arguments)
{
	const struct regress_row *worst = &regress->rows.items[0];
	struct errmsg err;

	errmsg_set(&err, 0,
		"%zu of %zu %s than in %.200s by more than %g %%, most the %s %.300s "
		"(%+.1f %%)",
		regress->slower, regress->rows.count,
		regress->is_energy ? "took more energy" : "got slower", arguments->baselines[0],
		arguments->threshold_percent, kind_name(regress, worst->kind), worst->name,
		worst->change_percent);
	fail(&err);
}

static void say_left_out(
	const struct selection *selection, const struct side *before, const struct side *after)
{
	const struct side *sides[] = {before, after};
	_cleanup_strbuf_ struct strbuf text = {0};

	for (size_t i = 0; i < ARRAY_SIZE(sides); i++) {
		array_foreach (&sides[i]->models, model) {
			if (!text.length)
				selection_describe_left_out(selection, *model, &text);
		}
	}
	if (text.length)
		printf("%s\n", strbuf_cstr(&text));
}

int report_regress(const struct regress_arguments *arguments, const struct shown_options *shown,
	const struct selection *selection, const char *const *paths, size_t count)
{
	_cleanup_(side_done) struct side before = {0};
	_cleanup_(side_done) struct side after = {0};
	_cleanup_regress_ struct regress regress = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	int r = side_load(
		&before, arguments->baselines, arguments->baseline_count, shown, selection, &err);

	r = r ?: side_load(&after, paths, count, shown, selection, &err);
	r = r ?: compare(&regress, arguments->threshold_percent, &before, &after, &err);
	if (r < 0)
		return fail(&err);
	if (arguments->json) {
		const struct regress_json_options options = {
			.threshold_percent = arguments->threshold_percent,
			.baselines = arguments->baselines,
			.baseline_count = arguments->baseline_count,
			.captures = paths,
			.capture_count = count,
			.limit = arguments->limit,
		};

		r = regress_json_write(&regress, &options, &out);
	} else {
		r = write_text(&regress, arguments, paths, count, &out);
	}
	if (r < 0) {
		errmsg_set(&err, r, "memory ran out while writing the comparison");
		return fail(&err);
	}
	fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	if (!arguments->json)
		say_left_out(selection, &before, &after);
	if (regress.slower)
		say_slower(&regress, arguments);
	return regress.slower ? EXIT_ERROR : EXIT_OK;
}
