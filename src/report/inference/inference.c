/* SPDX-License-Identifier: Apache-2.0 */
/* How fast requests to models were answered, as the report shows it. */
#include <math.h>

#include "model/format.h"
#include "report/inference/energy_cells.h"
#include "report/view.h"

#define NO_REQUEST "[no request]"

static void add_ns(struct table *table, double ns)
{
	if (isnan(ns))
		table_cell(table, "");
	else
		table_duration(table, (uint64_t)(ns + 0.5));
}

/* ---- the short section ---- */

static const char *const titles[INFERENCE_METRIC_MAX] = {
	[INFERENCE_TTFT] = "to first token (TTFT)",
	[INFERENCE_TTST] = "to second token (TTST)",
	[INFERENCE_TPOT] = "per token of a request (TPOT)",
	[INFERENCE_E2E] = "request, to last token (E2E)",
	[INFERENCE_QUEUE] = "queued",
	[INFERENCE_PREFILL] = "prefill",
	[INFERENCE_DECODE] = "decode",
};

static void add_spread(struct table *table, const struct spread *spread, const char *title)
{
	const double values[] = {
		spread->mean, spread->p50, spread->p90, spread->p95, spread->p99, spread->maximum};

	if (!spread->count)
		return;
	table_count(table, spread->count);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		add_ns(table, values[i]);
	table_cell(table, title);
}

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

static void describe_goodput(const struct report_view *view, const struct inference *inference)
{
	const struct inference_slo *slo = view->slo;
	_cleanup_strbuf_ struct strbuf text = {0};
	struct inference_goodput goodput;

	if (!slo)
		return;
	goodput = inference_goodput_of(inference, slo);
	strbuf_add(&text, "Goodput within ");
	describe_limits(&text, slo);
	strbuf_add(&text, ": ");
	if (!goodput.judged) {
		strbuf_add(&text, "not known, as no request has marks of all that is limited.");
	} else {
		if (!isnan(goodput.requests_per_s))
			strbuf_addf(&text, "%.4g requests/s, ", goodput.requests_per_s);
		strbuf_addf(&text, "%llu of %llu requests (%.1f %%)",
			(unsigned long long)goodput.met, (unsigned long long)goodput.judged,
			100 * goodput.share);
		if (goodput.unjudged)
			strbuf_addf(&text, "; of %llu something that is limited is not known",
				(unsigned long long)goodput.unjudged);
		strbuf_add_char(&text, '.');
	}
	report_paragraph(view, strbuf_cstr(&text), 0);
}

static void add_per(struct strbuf *out, const char *before, double joules, const char *after)
{
	if (isnan(joules))
		return;
	strbuf_add(out, before);
	format_energy(out, joules);
	strbuf_add(out, after);
}

static void describe_energy(const struct report_view *view)
{
	const struct inference_joules *joules = view->joules;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!report_has_energy(view))
		return;
	if (joules->all.reason) {
		strbuf_addf(&text,
			"Energy from the first begin to the last token is not known: %s.",
			joules->all.reason);
		report_paragraph(view, strbuf_cstr(&text), 0);
		return;
	}
	format_energy(&text, joules->all.full_j);
	add_per(&text, " \xc2\xb1", joules->all.uncertainty_j, "");
	add_per(&text, " (", joules->all.net_j, " without the idle share)");
	add_per(&text, ", ", joules->per_output_token_j, " for an output token");
	add_per(&text, ": in the decode ", joules->decode_per_output_token_j, "");
	add_per(&text, ", in the prefill ", joules->prefill_per_prompt_token_j,
		" for a token of a prompt");
	if (!isnan(joules->tokens_per_j))
		strbuf_addf(&text, ". %.4g tokens/J", joules->tokens_per_j);
	if (!isnan(joules->edp_per_token_js))
		strbuf_addf(&text, ", %.3g J\xc2\xb7s for a token (energy times median time)",
			joules->edp_per_token_js);
	strbuf_addf(&text, ". %.3g W on average, %.3g W at most.", joules->all.average_w,
		joules->all.peak_w);
	report_add_cost(&text, &view->rates, joules->all.full_j);
	report_paragraph(view, strbuf_cstr(&text), 0);
}

static void describe_rates(const struct report_view *view, const struct inference *inference)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	size_t named = 0;

	array_foreach (&inference->requests, request)
		named += *request->id != '\0';
	format_count(&text, named);
	strbuf_add(&text, named == 1 ? " request, " : " requests, ");
	format_count(&text, inference->output_tokens);
	strbuf_add(&text, " output tokens");
	if (!isnan(inference->tokens_per_s)) {
		strbuf_addf(&text, ": %.4g tokens/s of all requests", inference->tokens_per_s);
		if (inference->user_tokens_per_s.count)
			strbuf_addf(
				&text, ", %.4g of one (median)", inference->user_tokens_per_s.p50);
	}
	if (inference->prefill_tokens_per_s.count)
		strbuf_addf(&text, "; prompts are read at %.4g tokens/s (median)",
			inference->prefill_tokens_per_s.p50);
	strbuf_add_char(&text, '.');
	if (inference->large_chunks)
		strbuf_addf(&text,
			" %llu times several tokens came at once: times between tokens are from "
			"chunk to chunk.",
			(unsigned long long)inference->large_chunks);
	report_paragraph(view, strbuf_cstr(&text), 0);
	describe_goodput(view, inference);
	describe_energy(view);
}

static int print_metrics(const struct report_view *view, const struct inference *inference)
{
	static const struct table_column columns[] = {
		{.title = "Count", .right = true},
		{.title = "Mean", .right = true},
		{.title = "p50", .right = true},
		{.title = "p90", .right = true},
		{.title = "p95", .right = true},
		{.title = "p99", .right = true},
		{.title = "Max", .right = true},
		{.title = "Time", .is_text = true, .shrinks_to = 16},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};

	for (int i = 0; i < INFERENCE_METRIC_MAX; i++) {
		add_spread(&table, &inference->metrics[i], titles[i]);
		if (i == INFERENCE_TTST)
			add_spread(&table, &inference->itl, "between tokens (ITL)");
	}
	return table_print(&table, &view->terminal, view->out);
}

int report_inference(const struct report_view *view)
{
	const struct inference *inference = view->inference;
	int r;

	if (!inference || !inference->requests.count)
		return 0;
	report_heading(view, "Inference");
	r = print_metrics(view, inference);
	if (r == 0)
		describe_rates(view, inference);
	return r;
}

/* ---- tokens ---- */

static void add_gaps(struct table *table, const struct spread *gaps)
{
	const double values[] = {gaps->mean, gaps->p50, gaps->p95, gaps->p99, gaps->maximum};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		add_ns(table, values[i]);
}

static void add_metric(
	struct table *table, const struct inference_request *request, enum inference_metric metric)
{
	uint64_t time_ns;

	if (inference_duration(request, metric, &time_ns))
		table_duration(table, time_ns);
	else
		table_cell(table, "");
}

static void add_request_energy(const struct report_view *view, struct table *table,
	const struct inference_request *request)
{
	const struct joules *joules =
		&view->joules->requests.items[request - view->inference->requests.items];

	table_joules(table, joules);
	table_joules_per(table, joules, request->tokens_known ? (double)request->output_tokens : 0);
}

static int add_token_row(const struct report_view *view, struct table *table,
	const struct inference_request *request)
{
	struct spread gaps;
	int r = inference_gaps(view->inference, request, &gaps);

	if (r < 0)
		return r;
	table_count(table, request->output_tokens);
	add_metric(table, request, INFERENCE_TTFT);
	add_metric(table, request, INFERENCE_TTST);
	add_metric(table, request, INFERENCE_TPOT);
	add_gaps(table, &gaps);
	if (report_has_energy(view))
		add_request_energy(view, table, request);
	table_cell(table, *request->id ? request->id : NO_REQUEST);
	return 0;
}

static void add_all_tokens(const struct report_view *view, struct table *table)
{
	const struct inference *inference = view->inference;

	table_count(table, inference->output_tokens);
	add_ns(table, inference->metrics[INFERENCE_TTFT].mean);
	add_ns(table, inference->metrics[INFERENCE_TTST].mean);
	add_ns(table, inference->metrics[INFERENCE_TPOT].mean);
	add_gaps(table, &inference->itl);
	if (report_has_energy(view)) {
		table_joules(table, &view->joules->all);
		table_joules_per(table, &view->joules->all, (double)inference->output_tokens);
	}
	table_cellf(table, "all %zu", inference->requests.count);
}

/* The last row is of all requests, where there are several. */
int report_tokens(const struct report_view *view, size_t limit)
{
	static const char *const times[] = {"Tokens", "To first", "To second", "Per token",
		"Mean gap", "p50", "p95", "p99", "Max", "Energy", "J/token"};
	size_t shown = ARRAY_SIZE(times) - (report_has_energy(view) ? 0 : 2);
	struct table_column columns[ARRAY_SIZE(times) + 1];
	_cleanup_table_ struct table table = {.columns = columns, .column_count = shown + 1};
	struct energy_reasons reasons = {0};
	const struct inference *inference = view->inference;
	int r = 0;

	if (!inference->requests.count) {
		report_paragraph(view,
			"There are no tokens: no process that was recorded reported any; "
			"sonde.token(), sonde_token() and the hooks for transformers and vLLM do.",
			0);
		return 0;
	}
	for (size_t i = 0; i < shown; i++)
		columns[i] = (struct table_column){.title = times[i], .right = true};
	columns[shown] =
		(struct table_column){.title = "Request", .is_text = true, .shrinks_to = 16};
	report_heading(view, "Tokens (time to the first one, and between two of a request)");
	for (size_t i = 0; r == 0 && i < inference->requests.count && (!limit || i < limit); i++) {
		r = add_token_row(view, &table, &inference->requests.items[i]);
		if (report_has_energy(view))
			energy_reasons_add(&reasons, &view->joules->requests.items[i]);
	}
	if (inference->requests.count > 1)
		add_all_tokens(view, &table);
	r = r ?: table_print(&table, &view->terminal, view->out);
	if (limit && inference->requests.count > limit)
		strbuf_addf(view->out, "\xe2\x80\xa6 and %zu more\n",
			inference->requests.count - limit);
	if (report_has_energy(view))
		energy_reasons_print(&reasons, view);
	if (r == 0)
		describe_rates(view, inference);
	return r;
}

/* ---- requests ---- */

/* Columns that are there where some request has a value. */
struct request_columns {
	bool preempted, end, slo, energy;
};

static void add_prompt(struct table *table, const struct inference_request *request)
{
	if (!request->prompt_known)
		table_cell(table, "");
	else if (request->cached_tokens)
		table_cellf(table, "%llu (%llu cached)", (unsigned long long)request->prompt_tokens,
			(unsigned long long)request->cached_tokens);
	else
		table_count(table, request->prompt_tokens);
}

static void add_preempted(struct table *table, const struct inference_request *request)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (request->preemptions) {
		strbuf_addf(&text, "%llux ", (unsigned long long)request->preemptions);
		format_duration(&text, request->preempted_ns);
	}
	table_cell(table, strbuf_cstr(&text));
}

static void add_limits(const struct report_view *view, struct table *table,
	const struct inference_request *request)
{
	int met = inference_slo_met(request, view->slo);

	table_cell(table, met < 0 ? "" : met ? "kept" : "broken");
}

static void add_request(const struct report_view *view, struct table *table,
	const struct inference_request *request, const struct request_columns *shown)
{
	static const enum inference_metric metrics[] = {
		INFERENCE_QUEUE, INFERENCE_PREFILL, INFERENCE_TTFT, INFERENCE_TPOT, INFERENCE_E2E};
	uint64_t start_ns = model_start_ns(view->model), begin_ns = inference_begin_ns(request);

	if (begin_ns >= start_ns && begin_ns)
		table_duration(table, begin_ns - start_ns);
	else
		table_cell(table, "");
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		add_metric(table, request, metrics[i]);
	add_prompt(table, request);
	if (request->tokens_known)
		table_count(table, request->output_tokens);
	else
		table_cell(table, "");
	if (shown->preempted)
		add_preempted(table, request);
	if (shown->end)
		table_cell(table, !request->end_reason   ? ""
				  : *request->end_reason ? request->end_reason
							 : "not ended");
	if (shown->slo)
		add_limits(view, table, request);
	if (shown->energy)
		add_request_energy(view, table, request);
	table_cell(table, *request->id ? request->id : NO_REQUEST);
}

static void add_percentiles(
	struct table *table, const struct inference *inference, const struct request_columns *shown)
{
	static const enum inference_metric metrics[] = {
		INFERENCE_QUEUE, INFERENCE_PREFILL, INFERENCE_TTFT, INFERENCE_TPOT, INFERENCE_E2E};
	static const char *const names[] = {"p50", "p90", "p95", "p99"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		table_cell(table, "");
		for (size_t j = 0; j < ARRAY_SIZE(metrics); j++) {
			const struct spread *spread = &inference->metrics[metrics[j]];
			const double values[] = {
				spread->p50, spread->p90, spread->p95, spread->p99};

			add_ns(table, values[i]);
		}
		for (int j = 0;
			j < 2 + shown->preempted + shown->end + shown->slo + 2 * shown->energy; j++)
			table_cell(table, "");
		table_cell(table, names[i]);
	}
}

static size_t make_request_columns(
	const struct request_columns *shown, struct table_column *columns)
{
	static const char *const head[] = {"Arrived", "Queued", "Prefill", "First token",
		"Per token", "Total", "Prompt", "Output"};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		columns[count++] = (struct table_column){.title = head[i], .right = true};
	if (shown->preempted)
		columns[count++] = (struct table_column){.title = "Pre-empted", .right = true};
	if (shown->end)
		columns[count++] = (struct table_column){.title = "End", .is_text = true};
	if (shown->slo)
		columns[count++] = (struct table_column){.title = "Limits"};
	if (shown->energy) {
		columns[count++] = (struct table_column){.title = "Energy", .right = true};
		columns[count++] = (struct table_column){.title = "Per token", .right = true};
	}
	columns[count++] =
		(struct table_column){.title = "Request", .is_text = true, .shrinks_to = 16};
	return count;
}

int report_requests(const struct report_view *view, size_t limit)
{
	struct table_column columns[14];
	_cleanup_table_ struct table table = {.columns = columns};
	const struct inference *inference = view->inference;
	struct request_columns shown = {
		.slo = view->slo != NULL, .energy = report_has_energy(view)};
	struct energy_reasons reasons = {0};
	int r;

	if (!inference->requests.count) {
		report_paragraph(view,
			"There are no requests: no process that was recorded reported tokens with "
			"sonde.token() or sonde_token(), generated with transformers, or ran "
			"vLLM's scheduler with hooks; sonde record --hooks says why.",
			0);
		return 0;
	}
	array_foreach (&inference->requests, request) {
		shown.preempted |= request->preemptions > 0;
		shown.end |= request->end_reason != NULL;
	}
	table.column_count = make_request_columns(&shown, columns);
	report_heading(view, "Requests");
	for (size_t i = 0; i < inference->requests.count && (!limit || i < limit); i++) {
		add_request(view, &table, &inference->requests.items[i], &shown);
		if (shown.energy)
			energy_reasons_add(&reasons, &view->joules->requests.items[i]);
	}
	if (inference->requests.count > 1)
		add_percentiles(&table, inference, &shown);
	r = table_print(&table, &view->terminal, view->out);
	if (limit && inference->requests.count > limit)
		strbuf_addf(view->out, "\xe2\x80\xa6 and %zu more\n",
			inference->requests.count - limit);
	if (shown.energy)
		energy_reasons_print(&reasons, view);
	if (r == 0)
		describe_rates(view, inference);
	return r;
}
