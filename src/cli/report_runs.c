/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_runs.h"

#include <errno.h>
#include <string.h>

#include "analyses/inference/joules.h"
#include "analyses/inference/runs.h"
#include "base/map.h"
#include "base/warn.h"
#include "cli/command.h"
#include "cli/output.h"
#include "report/runs/runs.h"

struct all_runs {
	const struct report_runs_arguments *arguments;
	struct runs runs;
	struct run_comparison comparison;
	struct run_prediction prediction;
	enum run_figure predicted;
	struct intern texts; /* of labels: models are gone by then */
};

static void all_runs_done(struct all_runs *all)
{
	array_done(&all->runs.items);
	run_comparison_done(&all->comparison);
	intern_done(&all->texts);
}

/* ---- reading ---- */

static int keep(struct all_runs *all, const char **text)
{
	uint32_t id;
	int r = intern_add(&all->texts, *text, strlen(*text), &id);

	if (r < 0)
		return r;
	*text = intern_get(&all->texts, id);
	return 0;
}

static int describe(
	struct all_runs *all, struct model *model, const struct energy_use *energy, struct run *run)
{
	_cleanup_inference_ struct inference inference = {0};
	_cleanup_phase_use_ struct phase_use phases = {0};
	_cleanup_inference_joules_ struct inference_joules joules = {0};
	_cleanup_span_energy_ struct span_energy *spans = NULL;
	int r = inference_init(&inference, model);

	if (r == 0 && energy_use_has_any(energy))
		r = span_energy_new(&spans, model, energy);
	r = r ?: phase_use_init(&phases, model, NULL, &inference);
	r = r ?: inference_joules_init(&joules, spans, &inference, &phases);
	if (r < 0)
		return r;
	r = run_describe(run, model, &inference);
	if (r < 0)
		return r;
	run->energy_j = joules.all.full_j;
	run->uncertainty_j = joules.all.uncertainty_j;
	run->energy_reason = joules.all.reason;
	for (int i = 0; i < SPAN_ENERGY_SIDES; i++)
		run->states[i] = joules.all.sides[i].state;
	run->figures[RUN_WATTS] = joules.all.average_w;
	run->figures[RUN_JOULES_PER_TOKEN] = joules.per_output_token_j;
	r = keep(all, &run->model);
	return r ?: keep(all, &run->precision);
}

static int add_capture(struct all_runs *all, const char *path, struct errmsg *err)
{
	_cleanup_model_ struct model *model = NULL;
	_cleanup_energy_use_ struct energy_use energy = {0};
	_cleanup_weight_spans_ struct weight_spans spans = {0};
	struct run run = {.capture = path};
	int r = load_capture(path, all->arguments->shown, all->arguments->selection, &model, err);

	if (r == 0)
		r = charge_and_narrow(model, all->arguments->shown, all->arguments->selection,
			&energy, &spans, err);
	if (r < 0)
		return r;
	r = describe(all, model, &energy, &run);
	/* Interned texts do not move when others are added. */
	r = r ?: array_append(&all->runs.items, run);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while reading %s", path);
	if (run.output_tokens == 0)
		warn("%s has no tokens of requests: it has a row without figures", path);
	return 0;
}

/* ---- the report ---- */

static int write_report(const struct all_runs *all, const struct run_prediction *prediction)
{
	const struct runs_report report = {
		.runs = &all->runs,
		.comparison = &all->comparison,
		.rates = all->arguments->rates,
		.predict = all->arguments->predict,
		.prediction = prediction,
		.predicted = all->predicted,
	};
	_cleanup_result_ struct result result = {0};
	int r = runs_report_make(&result, &report);

	return r < 0 ? r : output_result(&result, all->arguments->form);
}

static int analyse(struct all_runs *all, struct errmsg *err)
{
	const struct run_prediction *prediction = NULL;
	int r;

	if (all->arguments->predict) {
		r = runs_predict_as_asked(&all->runs, all->arguments->predict, &all->predicted,
			&all->prediction, err);
		if (r < 0)
			return r;
		prediction = &all->prediction;
	}
	r = runs_find_optimal(&all->runs);
	if (r >= 0)
		r = run_comparison_init(&all->comparison, &all->runs);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while comparing runs");
	r = write_report(all, prediction);
	return r < 0 ? errmsg_set(err, r, "memory ran out while writing the report") : 0;
}

int report_runs(
	const struct report_runs_arguments *arguments, const char *const *captures, size_t count)
{
	_cleanup_(all_runs_done) struct all_runs all = {.arguments = arguments};
	struct errmsg err;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_capture(&all, captures[i], &err);
	r = r ?: analyse(&all, &err);
	return r < 0 ? fail(&err) : EXIT_OK;
}
