/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/inference/joules.h"
#include "analyses/inference/runs.h"
#include "base/map.h"
#include "base/warn.h"
#include "cli/command.h"
#include "model/format.h"
#include "report/runs/runs_json.h"
#include "report/view.h"

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
	run->figures[RUN_WATTS] = joules.all.average_w;
	run->figures[RUN_JOULES_PER_TOKEN] = joules.per_output_token_j;
	r = keep(all, &run->model);
	return r ?: keep(all, &run->precision);
}

static int add_capture(struct all_runs *all, const char *path, struct errmsg *err)
{
	_cleanup_model_ struct model *model = NULL;
	_cleanup_energy_use_ struct energy_use energy = {0};
	struct run run = {.capture = path};
	int r = load_capture(path, all->arguments->shown, all->arguments->selection, &model, err);

	r = r ?: charge_energy(model, all->arguments->selection, &energy, err);
	r = r ?: selection_narrow(all->arguments->selection, model, err);
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

/* ---- a prediction ---- */

static int parse_label(const char **text, double labels[RUN_LABEL_MAX], struct errmsg *err)
{
	const char *equals = strchr(*text, '=');
	enum run_label label = RUN_LABEL_MAX;
	char *end = NULL;
	double value = 0;

	if (equals) {
		label = run_label_from_string(*text, (size_t)(equals - *text));
		value = strtod(equals + 1, &end);
	}
	if (label == RUN_LABEL_MAX || end == equals + 1 || !(value > 0 && isfinite(value)) ||
		(*end && *end != ','))
		return errmsg_set(err, -EINVAL,
			"--predict '%.64s' says no label: give batch_size, context_length, "
			"parameters, active_parameters or experts with a number, such as "
			"batch_size=16,context_length=2048",
			*text);
	labels[label] = value;
	*text = *end ? end + 1 : end;
	return 0;
}

static int predict(struct all_runs *all, struct errmsg *err)
{
	const char *text = all->arguments->predict;
	double labels[RUN_LABEL_MAX];
	int r = 0;

	for (int i = 0; i < RUN_LABEL_MAX; i++)
		labels[i] = NAN;
	do
		r = parse_label(&text, labels, err);
	while (r == 0 && *text);
	all->predicted = RUN_JOULES_PER_TOKEN;
	array_foreach (&all->runs.items, run) {
		if (isnan(run->figures[RUN_JOULES_PER_TOKEN]))
			all->predicted = RUN_TPOT_NS;
	}
	return r ?: runs_predict(&all->runs, all->predicted, labels, &all->prediction, err);
}

/* ---- the report ---- */

static void add_figure(struct strbuf *out, enum run_figure figure, double value)
{
	if (figure == RUN_TTFT_NS || figure == RUN_TPOT_NS)
		format_duration(out, (uint64_t)(value + 0.5));
	else
		strbuf_addf(out, "%.4g%s", value,
			figure == RUN_TOKENS_PER_S       ? " tokens/s"
			: figure == RUN_JOULES_PER_TOKEN ? " J/token"
							 : " W");
}

static void add_number(struct table *table, const char *format, double value)
{
	char text[32] = "";

	if (!isnan(value))
		snprintf(text, sizeof(text), format, value);
	table_cell(table, text);
}

static void add_duration(struct table *table, double ns)
{
	if (isnan(ns))
		table_cell(table, "");
	else
		table_duration(table, (uint64_t)(ns + 0.5));
}

/* Columns that are there where some run has a value. */
struct run_columns {
	bool energy, cost, co2, cache;
};

static size_t make_columns(const struct run_columns *shown, struct table_column *columns)
{
	const struct {
		const char *title;
		bool is_shown;
	} numbers[] = {{"Tokens/s", true}, {"To first", true}, {"Per token", true},
		{"W", shown->energy}, {"J/token", shown->energy}, {"Cost/1M", shown->cost},
		{"g CO2/1M", shown->co2}, {"Batch", true}, {"Context", true},
		{"KV cache", shown->cache}};
	static const struct table_column texts[] = {
		{.title = "Precision", .is_text = true},
		{.title = "Best"},
		{.title = "Model", .is_text = true, .shrinks_to = 12},
		{.title = "Capture", .is_path = true, .shrinks_to = 16},
	};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (numbers[i].is_shown)
			columns[count++] =
				(struct table_column){.title = numbers[i].title, .right = true};
	}
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		columns[count++] = texts[i];
	return count;
}

static void add_run(struct table *table, const struct run *run, const struct run_columns *shown,
	const struct energy_rates *rates)
{
	double per_token = run->figures[RUN_JOULES_PER_TOKEN];

	add_number(table, "%.4g", run->figures[RUN_TOKENS_PER_S]);
	add_duration(table, run->figures[RUN_TTFT_NS]);
	add_duration(table, run->figures[RUN_TPOT_NS]);
	if (shown->energy) {
		add_number(table, "%.4g", run->figures[RUN_WATTS]);
		add_number(table, "%.4g", per_token);
	}
	if (shown->cost)
		add_number(table, "%.4g", energy_cost(rates, per_token * 1e6));
	if (shown->co2)
		add_number(table, "%.4g", energy_co2_g(rates, per_token * 1e6));
	add_number(table, "%.0f", run->labels[RUN_BATCH]);
	add_number(table, "%.0f", run->labels[RUN_CONTEXT]);
	if (shown->cache && !isnan(run->kv_cache_bytes))
		table_bytes(table, (uint64_t)run->kv_cache_bytes);
	else if (shown->cache)
		table_cell(table, "");
	table_cell(table, run->precision);
	table_cell(table, run->is_knee ? "knee" : run->is_optimal ? "optimal" : "");
	table_cell(table, run->model);
	table_cell(table, run->capture);
}

static int print_table(const struct report_view *view, const struct all_runs *all)
{
	const struct energy_rates *rates = &all->arguments->rates;
	struct table_column columns[14];
	_cleanup_table_ struct table table = {.columns = columns};
	struct run_columns shown = {0};

	array_foreach (&all->runs.items, run) {
		shown.energy |= !isnan(run->figures[RUN_JOULES_PER_TOKEN]);
		shown.cache |= !isnan(run->kv_cache_bytes);
	}
	shown.cost = shown.energy && !isnan(rates->price_per_kwh);
	shown.co2 = shown.energy && !isnan(rates->co2_g_per_kwh);
	table.column_count = make_columns(&shown, columns);
	report_heading(view, "Runs");
	array_foreach (&all->runs.items, run)
		add_run(&table, run, &shown, rates);
	return table_print(&table, &view->terminal, view->out);
}

static void print_best(const struct report_view *view, const struct all_runs *all)
{
	static const struct {
		enum run_figure figure;
		const char *text;
	} figures[] = {{RUN_JOULES_PER_TOKEN, "Least energy for a token"},
		{RUN_TOKENS_PER_S, "Most tokens a second"}, {RUN_TTFT_NS, "First token soonest"}};

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		uint32_t best = runs_best(&all->runs, figures[i].figure);
		_cleanup_strbuf_ struct strbuf text = {0};

		if (best == MODEL_NONE || all->runs.items.count < 2)
			continue;
		strbuf_addf(
			&text, "%s: %s (", figures[i].text, all->runs.items.items[best].capture);
		add_figure(&text, figures[i].figure,
			all->runs.items.items[best].figures[figures[i].figure]);
		strbuf_add(&text, ").");
		report_paragraph(view, strbuf_cstr(&text), 0);
	}
}

static void name_run(struct strbuf *out, const struct run *run, enum run_label by)
{
	if (by == RUN_LABEL_MAX)
		strbuf_add(out, *run->precision ? run->precision : "not known");
	else
		strbuf_addf(out, "%.0f", run->labels[by]);
}

static void print_series(
	const struct report_view *view, const struct all_runs *all, const struct run_series *series)
{
	static const char *const titles[RUN_LABEL_MAX + 1] = {
		[RUN_BATCH] = "Batch size",
		[RUN_CONTEXT] = "Context",
		[RUN_LABEL_MAX] = "Precision",
	};
	const struct run *items = all->runs.items.items;
	_cleanup_strbuf_ struct strbuf text = {0};
	const char *separator = ": ";

	strbuf_add(&text, titles[series->by]);
	if (*items[series->runs.items[0]].model)
		strbuf_addf(&text, " of %s", items[series->runs.items[0]].model);
	array_foreach (&series->runs, index) {
		double value = items[*index].figures[series->figure];

		strbuf_add(&text, separator);
		name_run(&text, &items[*index], series->by);
		strbuf_add_char(&text, ' ');
		if (isnan(value))
			strbuf_add(&text, "not known");
		else
			add_figure(&text, series->figure, value);
		separator = ", ";
	}
	strbuf_add(&text, series->figure == RUN_TPOT_NS ? " per token." : ".");
	if (series->best != MODEL_NONE) {
		strbuf_add(&text, " Best: ");
		name_run(&text, &items[series->best], series->by);
		strbuf_add_char(&text, '.');
	}
	if (series->saturated != MODEL_NONE) {
		strbuf_add(&text, " From ");
		name_run(&text, &items[series->saturated], series->by);
		strbuf_add(&text, " tokens on it is at least 20 % more than with the shortest.");
	}
	report_paragraph(view, strbuf_cstr(&text), 0);
}

/* "(8 experts, 12.9 of 46.7 billion parameters active)" */
static void describe_mixture(struct strbuf *out, const struct run *run)
{
	double active = run->labels[RUN_ACTIVE], all = run->labels[RUN_PARAMETERS];

	strbuf_addf(out, "%s (%.0f experts", run->capture, run->labels[RUN_EXPERTS]);
	if (!isnan(active) && !isnan(all))
		strbuf_addf(
			out, ", %.3g of %.3g million parameters active", active / 1e6, all / 1e6);
	strbuf_add_char(out, ')');
}

static void print_mixture(const struct report_view *view, const struct all_runs *all,
	const struct run_mixture *mixture)
{
	static const struct {
		enum run_figure figure;
		const char *text;
	} figures[] = {{RUN_JOULES_PER_TOKEN, "the energy of a token"},
		{RUN_TPOT_NS, "the time of a token"}, {RUN_TOKENS_PER_S, "the tokens/s"}};
	const struct run *run = &all->runs.items.items[mixture->mixture];
	const struct run *dense = &all->runs.items.items[mixture->dense];
	_cleanup_strbuf_ struct strbuf text = {0};
	const char *separator = " has ";

	describe_mixture(&text, run);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		double ratio = mixture->ratios[figures[i].figure];

		if (isnan(ratio))
			continue;
		strbuf_addf(&text, "%s%.3g times %s", separator, ratio, figures[i].text);
		separator = ", ";
	}
	if (*separator != ',')
		return; /* nothing of both is known */
	strbuf_addf(&text, " of %s, which has no experts", dense->capture);
	if (!isnan(run_size(dense)))
		strbuf_addf(&text, " and %.3g million parameters", run_size(dense) / 1e6);
	strbuf_add_char(&text, '.');
	if (!isnan(run->expert_balance))
		strbuf_addf(&text,
			" The balance of its experts is %.2f (1: all are chosen equally "
			"often).",
			run->expert_balance);
	report_paragraph(view, strbuf_cstr(&text), 0);
}

static void print_scaling(const struct report_view *view, const struct all_runs *all)
{
	static const enum run_figure figures[] = {RUN_JOULES_PER_TOKEN, RUN_TPOT_NS};

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		struct run_power_law law = runs_scaling(&all->runs, figures[i]);
		_cleanup_strbuf_ struct strbuf text = {0};

		if (isnan(law.power))
			continue;
		strbuf_addf(&text, "%s grows with parameters to the power of %.3g",
			figures[i] == RUN_TPOT_NS ? "Time per token" : "Energy per token",
			law.power);
		if (isnan(law.r_squared))
			strbuf_add_char(&text, '.');
		else
			strbuf_addf(
				&text, " (R\xc2\xb2 %.3f of %zu runs).", law.r_squared, law.count);
		report_paragraph(view, strbuf_cstr(&text), 0);
	}
}

static void print_prediction(const struct report_view *view, const struct all_runs *all)
{
	const struct run_prediction *prediction = &all->prediction;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!all->arguments->predict)
		return;
	strbuf_addf(&text, "With %s: ", all->arguments->predict);
	add_figure(&text, all->predicted, prediction->value);
	strbuf_add(&text, all->predicted == RUN_TPOT_NS ? " per token, from " : ", from ");
	add_figure(&text, all->predicted, prediction->low);
	strbuf_add(&text, " to ");
	add_figure(&text, all->predicted, prediction->high);
	strbuf_addf(
		&text, " (95 %%; each of %zu runs predicted from the others: ", prediction->count);
	if (!isnan(prediction->r_squared))
		strbuf_addf(&text, "R\xc2\xb2 %.3f, ", prediction->r_squared);
	strbuf_add(&text, "mean error ");
	add_figure(&text, all->predicted, prediction->mean_error);
	strbuf_add(&text, ").");
	if (prediction->is_extrapolation)
		strbuf_add(&text, " It lies outside of what was measured.");
	report_paragraph(view, strbuf_cstr(&text), 0);
}

static int write_text(const struct all_runs *all, struct strbuf *out)
{
	const struct report_view view = {.terminal = terminal_of(stdout), .out = out};
	int r = print_table(&view, all);

	if (r < 0)
		return r;
	print_best(&view, all);
	array_foreach (&all->comparison.series, series)
		print_series(&view, all, series);
	array_foreach (&all->comparison.mixtures, mixture)
		print_mixture(&view, all, mixture);
	print_scaling(&view, all);
	print_prediction(&view, all);
	return strbuf_status(out);
}

static int analyse(struct all_runs *all, struct strbuf *out, struct errmsg *err)
{
	const struct run_prediction *prediction = NULL;
	int r;

	if (all->arguments->predict) {
		r = predict(all, err);
		if (r < 0)
			return r;
		prediction = &all->prediction;
	}
	r = runs_find_optimal(&all->runs);
	if (r >= 0)
		r = run_comparison_init(&all->comparison, &all->runs);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while comparing runs");
	r = all->arguments->json ? runs_json_write(&all->runs, &all->comparison,
					   &all->arguments->rates, prediction, all->predicted, out)
				 : write_text(all, out);
	return r < 0 ? errmsg_set(err, r, "memory ran out while writing the report") : 0;
}

int report_runs(
	const struct report_runs_arguments *arguments, const char *const *captures, size_t count)
{
	_cleanup_(all_runs_done) struct all_runs all = {.arguments = arguments};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_capture(&all, captures[i], &err);
	r = r ?: analyse(&all, &out, &err);
	if (r < 0)
		return fail(&err);
	fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return EXIT_OK;
}
