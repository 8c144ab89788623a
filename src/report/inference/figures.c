/* SPDX-License-Identifier: Apache-2.0 */
#include "report/inference/figures.h"

#include <math.h>

#include "model/format.h"
#include "report/columns.h"

static const struct report_column spread_columns[] = {
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "mean", .kind = REPORT_NUMBER},
	{.key = "minimum", .kind = REPORT_NUMBER},
	{.key = "p50", .kind = REPORT_NUMBER},
	{.key = "p90", .kind = REPORT_NUMBER},
	{.key = "p95", .kind = REPORT_NUMBER},
	{.key = "p99", .kind = REPORT_NUMBER},
	{.key = "maximum", .kind = REPORT_NUMBER},
};
const struct report_shape report_spread_shape = REPORT_SHAPE(spread_columns);

void report_add_spread(struct result *result, const struct spread *spread)
{
	const double values[] = {spread->mean, spread->minimum, spread->p50, spread->p90,
		spread->p95, spread->p99, spread->maximum};

	if (!spread->count) {
		result_null(result);
		return;
	}
	result_open(result);
	result_u64(result, spread->count);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		result_number(result, values[i]);
	result_close(result);
}

/* ---- the times of all requests ---- */

static const struct report_column metric_columns[] = {
	{.title = "Count", .kind = REPORT_COUNT},
	{.title = "Mean", .kind = REPORT_NS},
	{.title = "p50", .kind = REPORT_NS},
	{.title = "p90", .kind = REPORT_NS},
	{.title = "p95", .kind = REPORT_NS},
	{.title = "p99", .kind = REPORT_NS},
	{.title = "Max", .kind = REPORT_NS},
	{.title = "Time", .kind = REPORT_TEXT, .shrinks_to = 16},
};
const struct report_shape report_metrics_shape = REPORT_SHAPE(metric_columns);

static const char *const titles[INFERENCE_METRIC_MAX] = {
	[INFERENCE_TTFT] = "to first token (TTFT)",
	[INFERENCE_TTST] = "to second token (TTST)",
	[INFERENCE_TPOT] = "per token of a request (TPOT)",
	[INFERENCE_E2E] = "request, to last token (E2E)",
	[INFERENCE_QUEUE] = "queued",
	[INFERENCE_PREFILL] = "prefill",
	[INFERENCE_DECODE] = "decode",
};

static void add_row(struct result *result, const struct spread *spread, const char *title)
{
	const double values[] = {
		spread->mean, spread->p50, spread->p90, spread->p95, spread->p99, spread->maximum};

	if (!spread->count)
		return;
	result_u64(result, spread->count);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		result_number(result, values[i]);
	result_text(result, title);
}

uint32_t report_add_metrics(struct result *result, const struct inference *inference)
{
	uint32_t table = result_open(result);

	for (int i = 0; i < INFERENCE_METRIC_MAX; i++) {
		add_row(result, &inference->metrics[i], titles[i]);
		if (i == INFERENCE_TTST)
			add_row(result, &inference->itl, "between tokens (ITL)");
	}
	result_close(result);
	return table;
}

void report_add_metric(struct result *result, const struct inference_request *request,
	enum inference_metric metric)
{
	uint64_t time_ns = 0;
	bool is_known = inference_duration(request, metric, &time_ns);

	result_known(result, is_known, time_ns);
}

/* ---- sentences ---- */

static void describe_limits(struct strbuf *out, const struct inference_slo *slo)
{
	const char *separator = "";

	for (int i = 0; i < INFERENCE_METRIC_MAX; i++) {
		if (!slo->limits_ns[i])
			continue;
		strbuf_addf(out, "%s%s ", separator,
			inference_metric_to_string((enum inference_metric)i));
		format_duration(out, slo->limits_ns[i]);
		separator = ", ";
	}
}

static void add_rate(struct strbuf *out, const char *before, double rate, const char *after)
{
	strbuf_add(out, before);
	format_rate(out, rate);
	strbuf_add(out, after);
}

static void describe_goodput(struct strbuf *text, const struct report_view *view)
{
	const struct inference_goodput goodput = inference_goodput_of(view->inference, view->slo);

	strbuf_add(text, "Goodput within ");
	describe_limits(text, view->slo);
	strbuf_add(text, ": ");
	if (!goodput.judged) {
		strbuf_add(text, "not known, because no request has marks for all limits.");
		return;
	}
	if (!isnan(goodput.requests_per_s))
		add_rate(text, "", goodput.requests_per_s, " requests/s, ");
	strbuf_addf(text, "%llu of %llu requests (%.1f %%)", (unsigned long long)goodput.met,
		(unsigned long long)goodput.judged, 100 * goodput.share);
	if (goodput.unjudged)
		strbuf_addf(text, "; for %llu a limited value is not known",
			(unsigned long long)goodput.unjudged);
	strbuf_add_char(text, '.');
}

static void add_per(struct strbuf *out, const char *before, double joules, const char *after)
{
	if (isnan(joules))
		return;
	strbuf_add(out, before);
	format_energy(out, joules);
	strbuf_add(out, after);
}

static void describe_energy(struct strbuf *text, const struct report_view *view)
{
	const struct inference_joules *joules = view->joules;

	if (joules->all.reason) {
		strbuf_addf(text,
			"The energy from the first begin to the last token is not known: %s.",
			joules->all.reason);
		return;
	}
	format_energy(text, joules->all.full_j);
	add_per(text, " \xc2\xb1", joules->all.uncertainty_j, "");
	add_per(text, " (", joules->all.net_j, " without the idle share)");
	add_per(text, ", ", joules->per_output_token_j, " per output token");
	add_per(text, ": in the decode ", joules->decode_per_output_token_j, "");
	add_per(text, ", in the prefill ", joules->prefill_per_prompt_token_j, " per prompt token");
	if (!isnan(joules->tokens_per_j))
		strbuf_addf(text, ". %.4g tokens/J", joules->tokens_per_j);
	if (!isnan(joules->edp_per_token_js))
		strbuf_addf(text, ", %.3g J\xc2\xb7s per token (energy times median time)",
			joules->edp_per_token_js);
	strbuf_addf(text, ". %.3g W on average, %.3g W peak.", joules->all.average_w,
		joules->all.peak_w);
	report_describe_cost(text, &view->rates, joules->all.full_j);
}

static void describe_rates(struct strbuf *text, const struct inference *inference)
{
	size_t named = 0;

	array_foreach (&inference->requests, request)
		named += *request->id != '\0';
	format_count(text, named);
	strbuf_add(text, named == 1 ? " request, " : " requests, ");
	format_count(text, inference->output_tokens);
	strbuf_add(text, " output tokens");
	if (!isnan(inference->tokens_per_s)) {
		add_rate(text, ": ", inference->tokens_per_s, " tokens/s of all requests");
		if (inference->user_tokens_per_s.count)
			add_rate(text, ", ", inference->user_tokens_per_s.p50, " of one (median)");
	}
	if (inference->prefill_tokens_per_s.count)
		add_rate(text, "; prompts are read at ", inference->prefill_tokens_per_s.p50,
			" tokens/s (median)");
	strbuf_add_char(text, '.');
	if (inference->large_chunks)
		strbuf_addf(text,
			" %llu times several tokens came at once: times between tokens are between "
			"chunks.",
			(unsigned long long)inference->large_chunks);
}

void report_say_rates(struct result *result, const struct report_view *view)
{
	_cleanup_strbuf_ struct strbuf rates = {0}, goodput = {0}, energy = {0};

	describe_rates(&rates, view->inference);
	result_say(result, 0, &rates);
	if (view->slo) {
		describe_goodput(&goodput, view);
		result_say(result, 0, &goodput);
	}
	if (view->span_energy) {
		describe_energy(&energy, view);
		result_say(result, 0, &energy);
	}
}

/* ---- costs ---- */

void report_add_span_cost(
	struct result *result, const struct model *model, const struct span_cost *cost)
{
	result_u64(result, cost->samples);
	columns_add_cpu_time(result, model, cost->samples);
	result_u64(result, cost->works);
	result_u64(result, cost->device_busy_ns);
}
