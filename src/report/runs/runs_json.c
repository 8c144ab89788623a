/* SPDX-License-Identifier: Apache-2.0 */
#include "report/runs/runs_json.h"

#include "base/json.h"
#include "report/tables_json.h"

#define VERSION 1

static void write_run(
	struct json_writer *json, const struct run *run, const struct energy_rates *rates)
{
	json_begin_object(json);
	json_member_text(json, "capture", run->capture);
	json_member_text(json, "model", run->model);
	json_member_text(json, "precision", run->precision);
	for (int i = 0; i < RUN_LABEL_MAX; i++)
		json_member_double(json, run_label_name((enum run_label)i), run->labels[i]);
	for (int i = 0; i < RUN_FIGURE_MAX; i++)
		json_member_double(json, run_figure_name((enum run_figure)i), run->figures[i]);
	json_member_double(json, "output_tokens", run->output_tokens);
	json_member_double(json, "energy_j", run->energy_j);
	json_member_double(json, "energy_uncertainty_j", run->uncertainty_j);
	json_member_text(json, "energy_reason", run->energy_reason);
	json_member_double(json, "cost", energy_cost(rates, run->energy_j));
	json_member_double(json, "co2_g", energy_co2_g(rates, run->energy_j));
	json_member_double(json, "kv_cache_bytes", run->kv_cache_bytes);
	json_member_double(json, "expert_balance", run->expert_balance);
	json_key(json, "is_optimal");
	json_bool(json, run->is_optimal);
	json_key(json, "is_knee");
	json_bool(json, run->is_knee);
	json_end_object(json);
}

static void write_best(struct json_writer *json, const struct runs *runs)
{
	json_key(json, "best");
	json_begin_object(json);
	for (int i = 0; i < RUN_FIGURE_MAX; i++) {
		uint32_t best = runs_best(runs, (enum run_figure)i);

		json_member_text(json, run_figure_name((enum run_figure)i),
			best == MODEL_NONE ? NULL : runs->items.items[best].capture);
	}
	json_end_object(json);
}

static void write_series(
	struct json_writer *json, const struct runs *runs, const struct run_series *series)
{
	const struct run *items = runs->items.items;

	json_begin_object(json);
	json_member_text(
		json, "by", series->by == RUN_LABEL_MAX ? "precision" : run_label_name(series->by));
	json_member_text(json, "figure", run_figure_name(series->figure));
	json_key(json, "captures");
	json_begin_array(json);
	array_foreach (&series->runs, index)
		json_string(json, items[*index].capture);
	json_end_array(json);
	json_member_text(
		json, "best", series->best == MODEL_NONE ? NULL : items[series->best].capture);
	json_member_text(json, "saturated_at",
		series->saturated == MODEL_NONE ? NULL : items[series->saturated].capture);
	json_end_object(json);
}

static void write_mixture(
	struct json_writer *json, const struct runs *runs, const struct run_mixture *mixture)
{
	json_begin_object(json);
	json_member_text(json, "capture", runs->items.items[mixture->mixture].capture);
	json_member_text(json, "dense", runs->items.items[mixture->dense].capture);
	json_key(json, "ratios");
	json_begin_object(json);
	for (int i = 0; i < RUN_FIGURE_MAX; i++)
		json_member_double(json, run_figure_name((enum run_figure)i), mixture->ratios[i]);
	json_end_object(json);
	json_end_object(json);
}

static void write_scaling(struct json_writer *json, const struct runs *runs)
{
	json_key(json, "scaling");
	json_begin_object(json);
	for (int i = 0; i < RUN_FIGURE_MAX; i++) {
		struct run_power_law law = runs_scaling(runs, (enum run_figure)i);

		json_key(json, run_figure_name((enum run_figure)i));
		json_begin_object(json);
		json_member_u64(json, "count", law.count);
		json_member_double(json, "scale", law.scale);
		json_member_double(json, "power", law.power);
		json_member_double(json, "r_squared", law.r_squared);
		json_end_object(json);
	}
	json_end_object(json);
}

static void write_prediction(struct json_writer *json, const struct run_prediction *prediction,
	enum run_figure predicted)
{
	json_key(json, "prediction");
	if (!prediction) {
		json_null(json);
		return;
	}
	json_begin_object(json);
	json_member_text(json, "figure", run_figure_name(predicted));
	json_member_double(json, "value", prediction->value);
	json_member_double(json, "low", prediction->low);
	json_member_double(json, "high", prediction->high);
	json_member_double(json, "r_squared", prediction->r_squared);
	json_member_double(json, "mean_error", prediction->mean_error);
	json_member_u64(json, "count", prediction->count);
	json_key(json, "labels");
	json_begin_array(json);
	for (unsigned i = 0; i < RUN_LABEL_MAX; i++) {
		if (prediction->labels & 1U << i)
			json_string(json, run_label_name((enum run_label)i));
	}
	json_end_array(json);
	json_key(json, "is_extrapolation");
	json_bool(json, prediction->is_extrapolation);
	json_end_object(json);
}

int runs_json_write(const struct runs *runs, const struct run_comparison *comparison,
	const struct energy_rates *rates, const struct run_prediction *prediction,
	enum run_figure predicted, struct strbuf *out)
{
	struct json_writer json = {.out = out, .pretty = true};

	json_begin_object(&json);
	json_member_text(&json, "format", "sonde-runs");
	json_member_u64(&json, "version", VERSION);
	json_key(&json, "runs");
	json_begin_array(&json);
	array_foreach (&runs->items, run)
		write_run(&json, run, rates);
	json_end_array(&json);
	write_best(&json, runs);
	json_key(&json, "series");
	json_begin_array(&json);
	array_foreach (&comparison->series, series)
		write_series(&json, runs, series);
	json_end_array(&json);
	json_key(&json, "mixtures");
	json_begin_array(&json);
	array_foreach (&comparison->mixtures, mixture)
		write_mixture(&json, runs, mixture);
	json_end_array(&json);
	write_scaling(&json, runs);
	write_prediction(&json, prediction, predicted);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return strbuf_status(out);
}
