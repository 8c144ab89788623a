/* SPDX-License-Identifier: Apache-2.0 */
#include "report/runs/runs.h"

#include <math.h>

#include "model/format.h"
#include "model/model.h"
#include "report/energy/joules.h"
#include "report/render.h"

#define VERSION 1

static const struct report_column run_columns[] = {
	{.key = "tokens_per_s", .title = "Tokens/s", .kind = REPORT_NUMBER, .digits = 4},
	{.key = "ttft_p50_ns", .title = "To first", .kind = REPORT_NS},
	{.key = "tpot_p50_ns", .title = "Per token", .kind = REPORT_NS},
	{.key = "average_w", .title = "Power", .kind = REPORT_WATTS, .hide = REPORT_HIDE_EMPTY},
	{.key = "joules_per_token",
		.title = "J/token",
		.kind = REPORT_NUMBER,
		.digits = 4,
		.hide = REPORT_HIDE_EMPTY},
	{.title = "Cost/1M", .kind = REPORT_NUMBER, .digits = 4, .hide = REPORT_HIDE_EMPTY},
	{.title = "g CO2/1M", .kind = REPORT_NUMBER, .digits = 4, .hide = REPORT_HIDE_EMPTY},
	{.key = "batch_size", .title = "Batch", .kind = REPORT_NUMBER},
	{.key = "context_length", .title = "Context", .kind = REPORT_NUMBER},
	{.key = "parameters", .kind = REPORT_NUMBER},
	{.key = "active_parameters", .kind = REPORT_NUMBER},
	{.key = "experts", .kind = REPORT_NUMBER},
	{.key = "output_tokens", .kind = REPORT_NUMBER},
	{.key = "energy_j", .kind = REPORT_JOULES},
	{.key = "energy_uncertainty_j", .kind = REPORT_JOULES},
	{.key = "energy_reason", .kind = REPORT_TEXT, .help = "why energy_j is null"},
	{.key = "host_state", .kind = REPORT_OBJECT, .shape = &report_state_shape},
	{.key = "device_state", .kind = REPORT_OBJECT, .shape = &report_state_shape},
	{.key = "cost", .kind = REPORT_NUMBER, .help = "of energy_j; null without --price"},
	{.key = "co2_g", .kind = REPORT_NUMBER, .help = "of energy_j; null without --co2"},
	{.key = "kv_cache_bytes",
		.title = "KV cache",
		.kind = REPORT_BYTES,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "expert_balance", .kind = REPORT_NUMBER},
	{.key = "expert_entropy",
		.kind = REPORT_NUMBER,
		.help = "of the shares of choices, by its most: 1 when all experts are chosen "
			"equally often"},
	{.key = "expert_load",
		.kind = REPORT_NUMBER,
		.help = "load_balance of the section experts: 1 when choices and probabilities are "
			"even"},
	{.key = "is_optimal", .kind = REPORT_FLAG},
	{.key = "is_knee", .kind = REPORT_FLAG},
	{.key = "precision", .title = "Precision", .kind = REPORT_TEXT},
	{.title = "Best", .kind = REPORT_TEXT},
	{.key = "model", .title = "Model", .kind = REPORT_TEXT, .shrinks_to = 12},
	{.key = "capture",
		.title = "Capture",
		.kind = REPORT_TEXT,
		.is_path = true,
		.shrinks_to = 16},
};
static const struct report_shape run_shape = REPORT_SHAPE(run_columns);

static const struct report_column best_columns[] = {
	{.key = "figure", .kind = REPORT_TEXT},
	{.key = "capture", .kind = REPORT_TEXT},
};
static const struct report_shape best_shape = REPORT_SHAPE(best_columns);

static const struct report_column name_columns[] = {{.kind = REPORT_TEXT}};
static const struct report_shape name_shape = REPORT_SHAPE(name_columns);

static const struct report_column series_columns[] = {
	{.key = "by", .kind = REPORT_TEXT},
	{.key = "figure", .kind = REPORT_TEXT},
	{.key = "captures", .kind = REPORT_LIST, .shape = &name_shape},
	{.key = "best", .kind = REPORT_TEXT},
	{.key = "saturated_at", .kind = REPORT_TEXT},
};
static const struct report_shape series_shape = REPORT_SHAPE(series_columns);

static const struct report_column ratio_columns[] = {
	{.key = "figure", .kind = REPORT_TEXT},
	{.key = "ratio", .kind = REPORT_NUMBER},
};
static const struct report_shape ratio_shape = REPORT_SHAPE(ratio_columns);

static const struct report_column precision_columns[] = {
	{.key = "capture", .kind = REPORT_TEXT},
	{.key = "baseline", .kind = REPORT_TEXT},
	{.key = "ratios", .kind = REPORT_MAP, .shape = &ratio_shape},
};
static const struct report_shape precision_shape = REPORT_SHAPE(precision_columns);

static const struct report_column mixture_columns[] = {
	{.key = "capture", .kind = REPORT_TEXT},
	{.key = "dense", .kind = REPORT_TEXT},
	{.key = "ratios", .kind = REPORT_MAP, .shape = &ratio_shape},
};
static const struct report_shape mixture_shape = REPORT_SHAPE(mixture_columns);

static const struct report_column law_columns[] = {
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "scale", .kind = REPORT_NUMBER},
	{.key = "power", .kind = REPORT_NUMBER},
	{.key = "r_squared", .kind = REPORT_NUMBER},
};
static const struct report_shape law_shape = REPORT_SHAPE(law_columns);

static const struct report_column scaling_columns[] = {
	{.key = "figure", .kind = REPORT_TEXT},
	{.key = "law", .kind = REPORT_OBJECT, .shape = &law_shape},
};
static const struct report_shape scaling_shape = REPORT_SHAPE(scaling_columns);

static const struct report_column prediction_columns[] = {
	{.key = "figure", .kind = REPORT_TEXT},
	{.key = "value", .kind = REPORT_NUMBER},
	{.key = "low", .kind = REPORT_NUMBER},
	{.key = "high", .kind = REPORT_NUMBER},
	{.key = "r_squared", .kind = REPORT_NUMBER},
	{.key = "mean_error", .kind = REPORT_NUMBER},
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "labels", .kind = REPORT_LIST, .shape = &name_shape},
	{.key = "is_extrapolation", .kind = REPORT_FLAG},
};
static const struct report_shape prediction_shape = REPORT_SHAPE(prediction_columns);

static const struct report_column columns[] = {
	{.key = "format", .kind = REPORT_TEXT},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "runs", .kind = REPORT_ROWS, .shape = &run_shape},
	{.key = "best", .kind = REPORT_MAP, .shape = &best_shape},
	{.key = "series", .kind = REPORT_ROWS, .shape = &series_shape},
	{.key = "precisions", .kind = REPORT_ROWS, .shape = &precision_shape},
	{.key = "mixtures", .kind = REPORT_ROWS, .shape = &mixture_shape},
	{.key = "scaling", .kind = REPORT_MAP, .shape = &scaling_shape},
	{.key = "prediction", .kind = REPORT_OBJECT, .shape = &prediction_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &shape};

/* ---- figures ---- */

static void add_run(struct result *result, const struct run *run, const struct energy_rates *rates)
{
	double per_token = run->figures[RUN_JOULES_PER_TOKEN];

	for (int i = 0; i < RUN_FIGURE_MAX; i++)
		result_number(result, run->figures[i]);
	result_number(result, energy_cost(rates, per_token * 1e6));
	result_number(result, energy_co2_g(rates, per_token * 1e6));
	for (int i = 0; i < RUN_LABEL_MAX; i++)
		result_number(result, run->labels[i]);
	result_number(result, run->output_tokens);
	result_number(result, run->energy_j);
	result_number(result, run->uncertainty_j);
	result_text(result, run->energy_reason);
	for (int i = 0; i < SPAN_ENERGY_SIDES; i++)
		report_add_state(result, &run->states[i]);
	result_number(result, energy_cost(rates, run->energy_j));
	result_number(result, energy_co2_g(rates, run->energy_j));
	result_known(result, !isnan(run->kv_cache_bytes),
		isnan(run->kv_cache_bytes) ? 0 : (uint64_t)run->kv_cache_bytes);
	result_number(result, run->expert_balance);
	result_number(result, run->expert_entropy);
	result_number(result, run->expert_load);
	result_flag(result, run->is_optimal);
	result_flag(result, run->is_knee);
	result_text(result, run->precision);
	result_text(result, run->is_knee ? "knee" : run->is_optimal ? "optimal" : NULL);
	result_text(result, run->model);
	result_text(result, run->capture);
}

static uint32_t add_runs(struct result *result, const struct runs_report *report)
{
	uint32_t table = result_open(result);

	array_foreach (&report->runs->items, run)
		add_run(result, run, &report->rates);
	result_close(result);
	return table;
}

/* NULL: there is none. */
static const char *capture_of(const struct runs *runs, uint32_t index)
{
	return index == MODEL_NONE ? NULL : runs->items.items[index].capture;
}

static void add_best(struct result *result, const struct runs *runs)
{
	result_open(result);
	for (int i = 0; i < RUN_FIGURE_MAX; i++) {
		result_text(result, run_figure_name((enum run_figure)i));
		result_text(result, capture_of(runs, runs_best(runs, (enum run_figure)i)));
	}
	result_close(result);
}

static void add_series(struct result *result, const struct runs_report *report)
{
	result_open(result);
	array_foreach (&report->comparison->series, series) {
		result_text(result,
			series->by == RUN_LABEL_MAX ? "precision" : run_label_name(series->by));
		result_text(result, run_figure_name(series->figure));
		result_open(result);
		array_foreach (&series->runs, index)
			result_text(result, capture_of(report->runs, *index));
		result_close(result);
		result_text(result, capture_of(report->runs, series->best));
		result_text(result, capture_of(report->runs, series->saturated));
	}
	result_close(result);
}

static void add_pairs(
	struct result *result, const struct runs *runs, const struct run_pair *pairs, size_t count)
{
	result_open(result);
	for (const struct run_pair *pair = pairs; pair < pairs + count; pair++) {
		result_text(result, capture_of(runs, pair->run));
		result_text(result, capture_of(runs, pair->beside));
		result_open(result);
		for (int i = 0; i < RUN_FIGURE_MAX; i++) {
			result_text(result, run_figure_name((enum run_figure)i));
			result_number(result, pair->ratios[i]);
		}
		result_close(result);
	}
	result_close(result);
}

static void add_scaling(struct result *result, const struct runs *runs)
{
	result_open(result);
	for (int i = 0; i < RUN_FIGURE_MAX; i++) {
		struct run_power_law law = runs_scaling(runs, (enum run_figure)i);

		result_text(result, run_figure_name((enum run_figure)i));
		result_open(result);
		result_u64(result, law.count);
		result_number(result, law.scale);
		result_number(result, law.power);
		result_number(result, law.r_squared);
		result_close(result);
	}
	result_close(result);
}

static void add_prediction(struct result *result, const struct runs_report *report)
{
	const struct run_prediction *prediction = report->prediction;

	if (!prediction) {
		result_null(result);
		return;
	}
	result_open(result);
	result_text(result, run_figure_name(report->predicted));
	result_number(result, prediction->value);
	result_number(result, prediction->low);
	result_number(result, prediction->high);
	result_number(result, prediction->r_squared);
	result_number(result, prediction->mean_error);
	result_u64(result, prediction->count);
	result_open(result);
	for (unsigned i = 0; i < RUN_LABEL_MAX; i++) {
		if (prediction->labels & 1U << i)
			result_text(result, run_label_name((enum run_label)i));
	}
	result_close(result);
	result_flag(result, prediction->is_extrapolation);
	result_close(result);
}

/* ---- sentences ---- */

static void add_figure(struct strbuf *out, enum run_figure figure, double value)
{
	if (figure == RUN_TTFT_NS || figure == RUN_TPOT_NS) {
		format_duration(out, (uint64_t)(value + 0.5));
		return;
	}
	format_rate(out, value);
	strbuf_add(out, figure == RUN_TOKENS_PER_S       ? " tokens/s"
			: figure == RUN_JOULES_PER_TOKEN ? " J/token"
							 : " W");
}

static void say_best(struct result *result, const struct runs_report *report)
{
	static const struct {
		enum run_figure figure;
		const char *text;
	} figures[] = {{RUN_JOULES_PER_TOKEN, "Least energy for a token"},
		{RUN_TOKENS_PER_S, "Most tokens a second"}, {RUN_TTFT_NS, "First token soonest"}};

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		uint32_t best = runs_best(report->runs, figures[i].figure);
		_cleanup_strbuf_ struct strbuf text = {0};

		if (best == MODEL_NONE || report->runs->items.count < 2)
			continue;
		strbuf_addf(&text, "%s: %s (", figures[i].text,
			report->runs->items.items[best].capture);
		add_figure(&text, figures[i].figure,
			report->runs->items.items[best].figures[figures[i].figure]);
		strbuf_add(&text, ").");
		result_say(result, 0, &text);
	}
}

/* What makes joules of two runs of one program differ, besides the program. */
static void say_states(struct result *result, const struct runs *runs, enum span_energy_side side)
{
	struct run_states states = runs_states(runs, side);
	const struct run *items = runs->items.items;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (states.warmest != MODEL_NONE)
		strbuf_addf(&text,
			"%.0f \xc2\xb0"
			"C in %s, %.0f \xc2\xb0"
			"C in %s",
			items[states.coolest].states[side].mean_c, items[states.coolest].capture,
			items[states.warmest].states[side].mean_c, items[states.warmest].capture);
	if (states.fastest != MODEL_NONE)
		strbuf_addf(&text, "%s%.0f MHz in %s, %.0f MHz in %s", text.length ? "; " : "",
			items[states.slowest].states[side].mean_mhz, items[states.slowest].capture,
			items[states.fastest].states[side].mean_mhz, items[states.fastest].capture);
	strbuf_inherit_status(&result->texts, &text);
	if (text.length)
		result_sentencef(result, 0,
			"%s were not in the same state: %s (means). Joules differ by that alone; "
			"they are not corrected. Warm up, and compare at one temperature and "
			"clock.",
			side == SPAN_ENERGY_HOST ? "Processors" : "GPUs", strbuf_cstr(&text));
}

static void name_run(struct strbuf *out, const struct run *run, enum run_label by)
{
	if (by == RUN_LABEL_MAX)
		strbuf_add(out, *run->precision ? run->precision : "not known");
	else
		strbuf_addf(out, "%.0f", run->labels[by]);
}

static void say_series(
	struct result *result, const struct runs_report *report, const struct run_series *series)
{
	static const char *const titles[RUN_LABEL_MAX + 1] = {
		[RUN_BATCH] = "Batch size",
		[RUN_CONTEXT] = "Context",
		[RUN_LABEL_MAX] = "Precision",
	};
	const struct run *items = report->runs->items.items;
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
	result_say(result, 0, &text);
}

/* Of parameters; of two the larger one chooses. */
static double size_unit(double parameters, const char **ret_name)
{
	*ret_name = parameters >= 1e9 ? "billion" : "million";
	return parameters >= 1e9 ? 1e9 : 1e6;
}

/* "(8 experts, 12.9 of 46.7 billion parameters active)" */
static void describe_mixture(struct strbuf *out, const struct run *run)
{
	double active = run->labels[RUN_ACTIVE], all = run->labels[RUN_PARAMETERS];

	strbuf_addf(out, "%s (%.0f experts", run->capture, run->labels[RUN_EXPERTS]);
	if (!isnan(active) && !isnan(all)) {
		const char *unit;
		double size = size_unit(all, &unit);

		strbuf_addf(out, ", %.3g of %.3g %s parameters active", active / size, all / size,
			unit);
	}
	strbuf_add_char(out, ')');
}

/* " has 0.8 times the energy of a token, …"; false: nothing of both is known. */
static bool add_ratios(struct strbuf *out, const struct run_pair *pair)
{
	static const struct {
		enum run_figure figure;
		const char *text;
	} figures[] = {{RUN_JOULES_PER_TOKEN, "the energy of a token"},
		{RUN_TPOT_NS, "the time of a token"}, {RUN_TOKENS_PER_S, "the tokens/s"}};
	const char *separator = " has ";

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		double ratio = pair->ratios[figures[i].figure];

		if (isnan(ratio))
			continue;
		strbuf_addf(out, "%s%.3g times %s", separator, ratio, figures[i].text);
		separator = ", ";
	}
	return *separator == ',';
}

static void say_precision(
	struct result *result, const struct runs_report *report, const struct run_pair *pair)
{
	const struct run *run = &report->runs->items.items[pair->run];
	const struct run *baseline = &report->runs->items.items[pair->beside];
	_cleanup_strbuf_ struct strbuf text = {0};

	if (*run->model)
		strbuf_addf(&text, "%s in ", run->model);
	name_run(&text, run, RUN_LABEL_MAX);
	if (!add_ratios(&text, pair))
		return;
	strbuf_addf(&text, " of %s.", baseline->precision);
	result_say(result, 0, &text);
}

static void say_mixture(
	struct result *result, const struct runs_report *report, const struct run_pair *mixture)
{
	const struct run *run = &report->runs->items.items[mixture->run];
	const struct run *dense = &report->runs->items.items[mixture->beside];
	_cleanup_strbuf_ struct strbuf text = {0};

	describe_mixture(&text, run);
	if (!add_ratios(&text, mixture))
		return;
	strbuf_addf(&text, " of %s, which has no experts", dense->capture);
	if (!isnan(run_size(dense))) {
		const char *unit;
		double size = size_unit(run_size(dense), &unit);

		strbuf_addf(&text, " and %.3g %s parameters", run_size(dense) / size, unit);
	}
	strbuf_add_char(&text, '.');
	if (!isnan(run->expert_balance))
		strbuf_addf(&text,
			" The balance of its experts is %.2f (1: all are chosen equally often).",
			run->expert_balance);
	result_say(result, 0, &text);
}

static void say_scaling(struct result *result, const struct runs_report *report)
{
	static const enum run_figure figures[] = {RUN_JOULES_PER_TOKEN, RUN_TPOT_NS};

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		struct run_power_law law = runs_scaling(report->runs, figures[i]);
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
		result_say(result, 0, &text);
	}
}

static void say_prediction(struct result *result, const struct runs_report *report)
{
	const struct run_prediction *prediction = report->prediction;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!prediction)
		return;
	strbuf_addf(&text, "With %s: ", report->predict);
	add_figure(&text, report->predicted, prediction->value);
	strbuf_add(&text, report->predicted == RUN_TPOT_NS ? " per token, from " : ", from ");
	add_figure(&text, report->predicted, prediction->low);
	strbuf_add(&text, " to ");
	add_figure(&text, report->predicted, prediction->high);
	strbuf_addf(
		&text, " (95 %%; each of %zu runs predicted from the others: ", prediction->count);
	if (!isnan(prediction->r_squared))
		strbuf_addf(&text, "R\xc2\xb2 %.3f, ", prediction->r_squared);
	strbuf_add(&text, "mean error ");
	add_figure(&text, report->predicted, prediction->mean_error);
	strbuf_add(&text, ").");
	if (prediction->is_extrapolation)
		strbuf_add(&text, " It lies outside the measured range.");
	result_say(result, 0, &text);
}

/* ---- all of it ---- */

int runs_report_make(struct result *result, const struct runs_report *report)
{
	uint32_t runs;

	result->column = &document;
	result_open(result);
	result_text(result, "sonde-runs");
	result_u64(result, VERSION);
	runs = add_runs(result, report);
	add_best(result, report->runs);
	add_series(result, report);
	add_pairs(result, report->runs, report->comparison->precisions.items,
		report->comparison->precisions.count);
	add_pairs(result, report->runs, report->comparison->mixtures.items,
		report->comparison->mixtures.count);
	add_scaling(result, report->runs);
	add_prediction(result, report);
	result_close(result);
	result_heading(result, "Runs");
	result_show(result, runs, &(struct result_show){0});
	say_best(result, report);
	for (int i = 0; i < SPAN_ENERGY_SIDES; i++)
		say_states(result, report->runs, (enum span_energy_side)i);
	array_foreach (&report->comparison->series, series)
		say_series(result, report, series);
	array_foreach (&report->comparison->precisions, pair)
		say_precision(result, report, pair);
	array_foreach (&report->comparison->mixtures, mixture)
		say_mixture(result, report, mixture);
	say_scaling(result, report);
	say_prediction(result, report);
	return result_status(result);
}

int runs_report_schema(struct strbuf *out)
{
	return report_render_schema_document(&shape, "sonde report --by run --json", out);
}
