/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_regress.h"

#include <errno.h>
#include <math.h>

#include "analyses/cpu/regress.h"
#include "cli/command.h"
#include "cli/output.h"
#include "report/runs/regress.h"

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

/* The sentence that a log of CI needs. */
static void say_slower(const struct regress *regress, const struct regress_arguments *arguments)
{
	const struct regress_row *worst = &regress->rows.items[0];
	struct errmsg err;

	errmsg_set(&err, 0,
		"%zu of %zu %s than in %.200s by more than %g %%, most the %s %.300s (%+.1f %%)",
		regress->slower, regress->rows.count,
		regress->is_energy ? "took more energy" : "got slower", arguments->baselines[0],
		arguments->threshold_percent, regress_report_kind(regress, worst->kind),
		worst->name, worst->change_percent);
	fail(&err);
}

/* What the filters do not apply to, in a sentence. */
static void describe_left_out(const struct selection *selection, const struct side *before,
	const struct side *after, struct strbuf *text)
{
	const struct side *sides[] = {before, after};

	for (size_t i = 0; i < ARRAY_SIZE(sides); i++) {
		array_foreach (&sides[i]->models, model) {
			if (!text->length)
				selection_describe_left_out(selection, *model, text);
		}
	}
}

static int write_report(const struct regress_report *report, enum report_form form)
{
	_cleanup_result_ struct result result = {0};
	int r = regress_report_make(&result, report);

	return r < 0 ? r : output_result(&result, form);
}

int report_regress(const struct regress_arguments *arguments, const struct shown_options *shown,
	const struct selection *selection, const char *const *paths, size_t count)
{
	_cleanup_(side_done) struct side before = {0};
	_cleanup_(side_done) struct side after = {0};
	_cleanup_regress_ struct regress regress = {0};
	_cleanup_strbuf_ struct strbuf left_out = {0};
	struct errmsg err;
	int r = side_load(
		&before, arguments->baselines, arguments->baseline_count, shown, selection, &err);

	if (r == 0)
		r = side_load(&after, paths, count, shown, selection, &err);
	if (r == 0)
		r = compare(&regress, arguments->threshold_percent, &before, &after, &err);
	if (r < 0)
		return fail(&err);
	describe_left_out(selection, &before, &after, &left_out);
	r = write_report(
		&(struct regress_report){
			.regress = &regress,
			.threshold_percent = arguments->threshold_percent,
			.baselines = arguments->baselines,
			.baseline_count = arguments->baseline_count,
			.captures = paths,
			.capture_count = count,
			.limit = arguments->limit,
			.left_out = left_out.length ? strbuf_cstr(&left_out) : NULL,
		},
		arguments->form);
	if (r < 0) {
		errmsg_set(&err, r, "memory ran out while writing the comparison");
		return fail(&err);
	}
	if (regress.slower)
		say_slower(&regress, arguments);
	return regress.slower ? EXIT_ERROR : EXIT_OK;
}
