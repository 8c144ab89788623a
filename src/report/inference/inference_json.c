/* SPDX-License-Identifier: Apache-2.0 */
#include "report/inference/inference_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyses/inference/layers.h"
#include "analyses/inference/phases.h"
#include "report/inference/joules_json.h"
#include "report/tables_json.h"

/* "ttft_ns": the key of a metric. */
static void metric_key(enum inference_metric metric, char *out, size_t size)
{
	snprintf(out, size, "%s_ns", inference_metric_to_string(metric));
}

static void write_spread(struct json_writer *json, const char *key, const struct spread *spread)
{
	json_key(json, key);
	if (!spread->count) {
		json_null(json);
		return;
	}
	json_begin_object(json);
	json_member_u64(json, "count", spread->count);
	json_member_double(json, "mean", spread->mean);
	json_member_double(json, "minimum", spread->minimum);
	json_member_double(json, "p50", spread->p50);
	json_member_double(json, "p90", spread->p90);
	json_member_double(json, "p95", spread->p95);
	json_member_double(json, "p99", spread->p99);
	json_member_double(json, "maximum", spread->maximum);
	json_end_object(json);
}

/* ---- tokens ---- */

static void write_gaps(struct json_writer *json, const struct spread *gaps)
{
	json_key(json, "between_tokens");
	if (!gaps->count) {
		json_null(json);
		return;
	}
	json_begin_object(json);
	json_member_u64(json, "count", gaps->count);
	json_member_u64(json, "mean_ns", (uint64_t)gaps->mean);
	json_member_u64(json, "p50_ns", (uint64_t)gaps->p50);
	json_member_u64(json, "p95_ns", (uint64_t)gaps->p95);
	json_member_u64(json, "maximum_ns", (uint64_t)gaps->maximum);
	json_end_object(json);
}

static int write_token_row(struct json_writer *json, const struct model *model,
	const struct inference *inference, const struct inference_request *request)
{
	uint64_t first_ns = 0;
	bool has_first = inference_duration(request, INFERENCE_TTFT, &first_ns);
	struct spread gaps;
	int r = inference_gaps(inference, request, &gaps);

	if (r < 0)
		return r;
	json_begin_object(json);
	json_member_text(json, "request", request->id);
	json_member_u64(json, "pid", model->processes.items[request->process].pid);
	json_member_u64(json, "tokens", request->tokens);
	json_member_known(json, "time_to_first_token_ns", has_first, first_ns);
	write_gaps(json, &gaps);
	json_end_object(json);
	return 0;
}

static int write_tokens(
	struct json_writer *json, const struct model *model, const struct inference *inference)
{
	bool has_any = false;
	int r = 0;

	array_foreach (&inference->requests, request)
		has_any |= !request->of_engine;
	json_key(json, "tokens");
	if (!has_any) {
		json_null(json);
		return 0;
	}
	json_begin_object(json);
	json_member_u64(json, "tokens", inference->tokens);
	write_gaps(json, &inference->itl);
	json_key(json, "requests");
	json_begin_array(json);
	for (size_t i = 0; r == 0 && i < inference->requests.count; i++) {
		if (!inference->requests.items[i].of_engine)
			r = write_token_row(json, model, inference, &inference->requests.items[i]);
	}
	json_end_array(json);
	json_end_object(json);
	return r;
}

/* ---- requests ---- */

static void write_goodput(struct json_writer *json, const struct inference *inference,
	const struct inference_slo *slo)
{
	struct inference_goodput goodput;
	char key[32];

	json_key(json, "goodput");
	if (!slo) {
		json_null(json);
		return;
	}
	goodput = inference_goodput_of(inference, slo);
	json_begin_object(json);
	json_key(json, "limits");
	json_begin_object(json);
	for (int i = 0; i < INFERENCE_METRIC_MAX; i++) {
		metric_key((enum inference_metric)i, key, sizeof(key));
		json_member_known(json, key, slo->limits_ns[i] != 0, slo->limits_ns[i]);
	}
	json_end_object(json);
	json_member_u64(json, "judged", goodput.judged);
	json_member_u64(json, "met", goodput.met);
	json_member_u64(json, "unjudged", goodput.unjudged);
	json_member_double(json, "share", goodput.share);
	json_member_double(json, "requests_per_s", goodput.requests_per_s);
	json_end_object(json);
}

static void write_raw_gaps(struct json_writer *json, const struct inference *inference,
	const struct inference_request *request)
{
	json_key(json, "itl_ns");
	json_begin_array(json);
	for (size_t i = 0; i < request->gap_count; i++)
		json_u64(json, inference->gaps.items[request->first_gap + i]);
	json_end_array(json);
}

/* What the parts of the document are made of. */
struct parts {
	const struct model *model;
	const struct inference *inference;
	const struct phase_use *phases;
	const struct inference_joules *joules;
	const struct report_inference_json_options *options;
};

static void write_request(struct json_writer *json, const struct parts *parts, size_t index)
{
	const struct inference_request *request = &parts->inference->requests.items[index];
	const struct model *model = parts->model;
	const struct inference_slo *slo = parts->options->slo;
	uint64_t begin_ns = inference_begin_ns(request), start_ns = model_start_ns(model);
	int met = slo ? inference_slo_met(request, slo) : -ENODATA;
	char key[32];

	json_begin_object(json);
	json_member_text(json, "id", request->id);
	json_member_u64(json, "pid", model->processes.items[request->process].pid);
	json_member_known(json, "begin_ns", begin_ns && begin_ns >= start_ns, begin_ns - start_ns);
	json_key(json, "arrival_known");
	json_bool(json, request->arrival_ns != 0);
	for (int i = 0; i < INFERENCE_METRIC_MAX; i++) {
		uint64_t time_ns = 0;
		bool known = inference_duration(request, (enum inference_metric)i, &time_ns);

		metric_key((enum inference_metric)i, key, sizeof(key));
		json_member_known(json, key, known, time_ns);
	}
	json_member_known(json, "prompt_tokens", request->prompt_known, request->prompt_tokens);
	json_member_known(json, "cached_tokens", request->prompt_known, request->cached_tokens);
	json_member_known(json, "batch", request->batch != 0, request->batch);
	json_member_known(json, "output_tokens", request->tokens_known, request->output_tokens);
	json_member_known(json, "chunks", !request->of_engine, request->chunks);
	json_member_known(json, "preemptions", request->of_engine, request->preemptions);
	json_member_known(json, "preempted_ns", request->of_engine, request->preempted_ns);
	json_member_text(json, "end", request->end_reason);
	json_key(json, "within_limits");
	if (met < 0)
		json_null(json);
	else
		json_bool(json, met);
	write_raw_gaps(json, parts->inference, request);
	if (parts->options->energy)
		json_member_joules(
			json, &parts->joules->requests.items[index], parts->options->rates);
	json_end_object(json);
}

/* Where energy was measured. */
static void write_ratios(struct json_writer *json, const struct parts *parts)
{
	const struct inference_joules *joules = parts->joules;

	if (!parts->options->energy)
		return;
	json_member_joules(json, &joules->all, parts->options->rates);
	json_member_double(json, "joules_per_output_token", joules->per_output_token_j);
	json_member_double(
		json, "decode_joules_per_output_token", joules->decode_per_output_token_j);
	json_member_double(
		json, "prefill_joules_per_prompt_token", joules->prefill_per_prompt_token_j);
	json_member_double(json, "tokens_per_joule", joules->tokens_per_j);
	json_member_double(json, "edp_js", joules->edp_js);
	json_member_double(json, "edp_per_token_js", joules->edp_per_token_js);
}

static void write_inference(struct json_writer *json, const struct parts *parts)
{
	const struct inference *inference = parts->inference;
	size_t limit = parts->options->limit;
	char key[32];

	json_key(json, "inference");
	if (!inference->requests.count) {
		json_null(json);
		return;
	}
	json_begin_object(json);
	json_member_u64(json, "output_tokens", inference->output_tokens);
	json_member_known(json, "span_ns", inference->span_ns != 0, inference->span_ns);
	json_member_double(json, "tokens_per_s", inference->tokens_per_s);
	write_spread(json, "user_tokens_per_s", &inference->user_tokens_per_s);
	write_spread(json, "prefill_tokens_per_s", &inference->prefill_tokens_per_s);
	for (int i = 0; i < INFERENCE_METRIC_MAX; i++) {
		metric_key((enum inference_metric)i, key, sizeof(key));
		write_spread(json, key, &inference->metrics[i]);
	}
	write_spread(json, "itl_ns", &inference->itl);
	json_member_u64(json, "chunks_of_several_tokens", inference->large_chunks);
	write_goodput(json, inference, parts->options->slo);
	write_ratios(json, parts);
	json_member_u64(json, "requests_total", inference->requests.count);
	json_key(json, "requests");
	json_begin_array(json);
	for (size_t i = 0; i < inference->requests.count && (!limit || i < limit); i++)
		write_request(json, parts, i);
	json_end_array(json);
	json_end_object(json);
}

/* ---- phases, layers ---- */

static void write_cost(
	struct json_writer *json, const struct model *model, const struct span_cost *cost)
{
	json_member_u64(json, "samples", cost->samples);
	json_member_known(json, "cpu_time_ns", model_has_time(model),
		cost->samples * model_sample_weight_ns(model));
	json_member_u64(json, "device_work_count", cost->works);
	json_member_u64(json, "device_busy_ns", cost->device_busy_ns);
}

static void write_phases(struct json_writer *json, const struct parts *parts)
{
	const struct phase_use *use = parts->phases;

	json_key(json, "phases");
	if (!use->has_any) {
		json_null(json);
		return;
	}
	json_begin_object(json);
	json_key(json, "overlap");
	json_bool(json, use->overlaps);
	json_key(json, "rows");
	json_begin_array(json);
	for (int i = 0; i < INFERENCE_PHASE_MAX; i++) {
		const struct phase_row *row = &use->rows[i];

		if (!row->count)
			continue;
		json_begin_object(json);
		json_member_text(json, "phase", inference_phase_name((enum inference_phase)i));
		json_member_u64(json, "count", row->count);
		json_member_u64(json, "total_ns", row->total_ns);
		json_member_u64(json, "covered_ns", row->covered_ns);
		json_member_known(json, "tokens", row->tokens_known, row->tokens);
		write_cost(json, parts->model, &row->cost);
		if (parts->options->energy) {
			json_member_joules(json, &parts->joules->phases[i], parts->options->rates);
			json_member_double(json, "edp_js", parts->joules->phase_edp_js[i]);
		}
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}

/* `joules` NULL: nothing was measured. */
static void write_layer(struct json_writer *json, const struct model *model,
	const struct layer_use *use, const struct layer_row *row, const struct joules *joules)
{
	json_begin_object(json);
	json_member_known(json, "layer", row->layer != LAYER_NONE, row->layer);
	json_member_text(json, "role", row->role);
	json_key(json, "rest");
	json_bool(json, row->is_rest);
	json_member_u64(json, "pid", model->processes.items[row->process].pid);
	json_member_u64(json, "calls", row->calls);
	json_member_u64(json, "total_ns", row->total_ns);
	json_member_u64(json, "own_ns", row->own_ns);
	json_member_double(
		json, "share", use->step_ns ? (double)row->own_ns / (double)use->step_ns : 0);
	json_member_known(json, "own_thread_cpu_ns", use->has_cpu, row->own_cpu_ns);
	write_cost(json, model, &row->own);
	if (joules)
		json_member_joules(json, joules, NULL);
	json_end_object(json);
}

static int write_layers(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct span_energy *energy)
{
	_cleanup_layer_use_ struct layer_use use = {0};
	_cleanup_free_ struct joules *joules = NULL;
	int r = layer_use_init(&use, model, selected);

	if (r == 0 && energy && use.rows.count) {
		joules = calloc(use.rows.count, sizeof(*joules));
		r = joules ? joules_of_rows(energy, &use.spans, NULL, use.rows.count, joules)
			   : -ENOMEM;
	}
	if (r < 0)
		return r;
	json_key(json, "layers");
	if (!use.rows.count) {
		json_null(json);
		return 0;
	}
	json_begin_object(json);
	json_member_u64(json, "steps", use.steps);
	json_member_u64(json, "steps_ns", use.step_ns);
	json_member_u64(json, "unwatched_steps", use.unwatched_steps);
	json_member_known(json, "watched_mean_ns", use.watched.count != 0,
		use.watched.count ? use.watched.total_ns / use.watched.count : 0);
	json_member_known(json, "unwatched_mean_ns", use.unwatched.count != 0,
		use.unwatched.count ? use.unwatched.total_ns / use.unwatched.count : 0);
	json_member_u64(json, "in_layers_ns", use.layers_ns);
	json_member_u64(json, "in_other_components_ns", use.model_ns);
	json_member_u64(json, "in_no_component_ns", use.rest_ns);
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; i < use.rows.count; i++)
		write_layer(json, model, &use, &use.rows.items[i], joules ? &joules[i] : NULL);
	json_end_array(json);
	json_end_object(json);
	return 0;
}

int report_inference_json(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct report_inference_json_options *options)
{
	_cleanup_inference_ struct inference inference = {0};
	_cleanup_phase_use_ struct phase_use phases = {0};
	_cleanup_inference_joules_ struct inference_joules joules = {0};
	const struct parts parts = {model, &inference, &phases, &joules, options};
	int r = inference_init(&inference, model);

	r = r ?: phase_use_init(&phases, model, selected, &inference);
	r = r ?: inference_joules_init(&joules, options->energy, &inference, &phases);
	r = r ?: write_tokens(json, model, &inference);
	if (r < 0)
		return r;
	write_inference(json, &parts);
	write_phases(json, &parts);
	return write_layers(json, model, selected, options->energy);
}
