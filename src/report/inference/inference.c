/* SPDX-License-Identifier: Apache-2.0 */
/* How fast requests to models were answered, and their tokens came: of all in short, and each. */
#include <string.h>

#include "report/inference/figures.h"
#include "report/sections.h"

static const struct report_column gap_columns[] = {{.kind = REPORT_NS}};
static const struct report_shape gap_shape = REPORT_SHAPE(gap_columns);

/* In the order of the columns. */
static const enum inference_metric request_metrics[] = {INFERENCE_QUEUE, INFERENCE_PREFILL,
	INFERENCE_TTFT, INFERENCE_TTST, INFERENCE_TPOT, INFERENCE_E2E, INFERENCE_DECODE};

#define BY_TOKEN "token"

/* Tables of the same rows: times of requests, and of their tokens. */
enum { REQUESTS, TOKENS };
#define ONLY_TOKENS (1U << TOKENS)

#define SPREAD(of)                                                                                 \
	{                                                                                          \
		.key = (of), .kind = REPORT_OBJECT, .shape = &report_spread_shape                  \
	}

static const struct report_column request_columns[] = {
	{.key = "begin_ns",
		.title = "Arrived",
		.kind = REPORT_NS,
		.help = "since the recording began"},
	{.key = "arrival_known",
		.kind = REPORT_FLAG,
		.help = "false: the begin of the prefill is used instead"},
	{.key = "queue_ns", .title = "Queued", .kind = REPORT_NS},
	{.key = "prefill_ns", .title = "Prefill", .kind = REPORT_NS},
	{.key = "ttft_ns", .title = "First token", .kind = REPORT_NS, .views = REPORT_ALL_VIEWS},
	{.key = "ttst_ns", .title = "Second", .kind = REPORT_NS, .views = ONLY_TOKENS},
	{.key = "tpot_ns", .title = "Per token", .kind = REPORT_NS, .views = REPORT_ALL_VIEWS},
	{.key = "e2e_ns", .title = "Total", .kind = REPORT_NS},
	{.key = "decode_ns", .kind = REPORT_NS},
	{.key = "prompt_tokens", .title = "Prompt", .kind = REPORT_COUNT},
	{.key = "cached_tokens",
		.title = "Cached",
		.kind = REPORT_COUNT,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "batch", .kind = REPORT_COUNT, .help = "sequences"},
	{.key = "output_tokens",
		.title = "Output",
		.kind = REPORT_COUNT,
		.views = REPORT_ALL_VIEWS},
	{.key = "tokens", .kind = REPORT_COUNT, .help = "of each sequence"},
	{.key = "chunks", .kind = REPORT_COUNT},
	{.title = "Mean gap", .kind = REPORT_NS, .views = ONLY_TOKENS},
	{.title = "p50", .kind = REPORT_NS, .views = ONLY_TOKENS},
	{.title = "p95", .kind = REPORT_NS, .views = ONLY_TOKENS},
	{.title = "p99", .kind = REPORT_NS, .views = ONLY_TOKENS},
	{.title = "Max", .kind = REPORT_NS, .views = ONLY_TOKENS},
	SPREAD("between_tokens_ns"),
	{.key = "preemptions",
		.title = "Pre-empted",
		.kind = REPORT_COUNT,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "preempted_ns", .title = "", .kind = REPORT_NS, .hide = REPORT_HIDE_EMPTY},
	{.key = "end", .kind = REPORT_TEXT, .help = "why it ended"},
	{.title = "End", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY},
	{.key = "within_limits", .kind = REPORT_FLAG, .help = "of --slo; null: not known"},
	{.title = "Limits", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY},
	REPORT_JOULES_COLUMNS("J/token", REPORT_ALL_VIEWS),
	{.key = "itl_ns", .kind = REPORT_LIST, .shape = &gap_shape},
	{.key = "pid", .kind = REPORT_INTEGER},
	{.key = "id",
		.title = "Request",
		.kind = REPORT_TEXT,
		.views = REPORT_ALL_VIEWS,
		.shrinks_to = 16,
		.unknown = REPORT_NO_REQUEST},
};
static const struct report_shape request_shape = REPORT_SHAPE(request_columns);

#define LIMIT(of)                                                                                  \
	{                                                                                          \
		.key = (of), .kind = REPORT_NS                                                     \
	}

static const struct report_column limit_columns[] = {
	[INFERENCE_TTFT] = LIMIT("ttft_ns"),
	[INFERENCE_TTST] = LIMIT("ttst_ns"),
	[INFERENCE_TPOT] = LIMIT("tpot_ns"),
	[INFERENCE_E2E] = LIMIT("e2e_ns"),
	[INFERENCE_QUEUE] = LIMIT("queue_ns"),
	[INFERENCE_PREFILL] = LIMIT("prefill_ns"),
	[INFERENCE_DECODE] = LIMIT("decode_ns"),
};
static const struct report_shape limit_shape = REPORT_SHAPE(limit_columns);

static const struct report_column goodput_columns[] = {
	{.key = "limits", .kind = REPORT_OBJECT, .shape = &limit_shape},
	{.key = "judged", .kind = REPORT_COUNT, .help = "requests, as are the next two"},
	{.key = "met", .kind = REPORT_COUNT},
	{.key = "unjudged", .kind = REPORT_COUNT},
	{.key = "share", .kind = REPORT_SHARE, .help = "of those judged"},
	{.key = "requests_per_s", .kind = REPORT_NUMBER},
};
static const struct report_shape goodput_shape = REPORT_SHAPE(goodput_columns);

static const struct report_column columns[] = {
	{.key = "tokens", .kind = REPORT_COUNT, .help = "marks of them, also of no request"},
	{.key = "output_tokens", .kind = REPORT_COUNT},
	{.key = "span_ns", .kind = REPORT_NS, .help = "from the first begin to the last token"},
	{.key = "tokens_per_s", .kind = REPORT_NUMBER},
	SPREAD("user_tokens_per_s"),
	SPREAD("prefill_tokens_per_s"),
	/* By enum inference_metric. */
	SPREAD("ttft_ns"),
	SPREAD("ttst_ns"),
	SPREAD("tpot_ns"),
	SPREAD("e2e_ns"),
	SPREAD("queue_ns"),
	SPREAD("prefill_ns"),
	SPREAD("decode_ns"),
	SPREAD("itl_ns"),
	{.key = "chunks_of_several_tokens", .kind = REPORT_COUNT},
	{.key = "goodput",
		.kind = REPORT_OBJECT,
		.shape = &goodput_shape,
		.help = "null without --slo"},
	REPORT_JOULES_MEMBER,
	{.key = "joules_per_output_token", .kind = REPORT_JOULES},
	{.key = "decode_joules_per_output_token", .kind = REPORT_JOULES},
	{.key = "prefill_joules_per_prompt_token", .kind = REPORT_JOULES},
	{.key = "tokens_per_joule", .kind = REPORT_NUMBER},
	{.key = "edp_js", .kind = REPORT_NUMBER, .help = "joules times seconds"},
	{.key = "edp_per_token_js", .kind = REPORT_NUMBER},
	{.key = "requests_ended", .kind = REPORT_COUNT, .help = "with a reason"},
	{.key = "preemptions", .kind = REPORT_COUNT, .help = "of all requests"},
	{.key = "requests",
		.total = "requests_total",
		.kind = REPORT_ROWS,
		.shape = &request_shape},
	{.kind = REPORT_ROWS, .shape = &report_metrics_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- requests ---- */

static void add_limits(struct result *result, const struct inference_request *request,
	const struct inference_slo *slo)
{
	int met = slo ? inference_slo_met(request, slo) : -ENODATA;

	if (met < 0)
		result_null(result);
	else
		result_flag(result, met);
	result_text(result, met < 0 ? NULL : met ? "kept" : "broken");
}

static void add_end(struct result *result, const char *reason)
{
	result_text(result, reason);
	result_text(result, reason && !*reason ? "not ended" : reason);
}

static void add_gaps(struct result *result, const struct inference *inference,
	const struct inference_request *request)
{
	result_open(result);
	for (size_t i = 0; i < request->gap_count; i++)
		result_u64(result, inference->gaps.items[request->first_gap + i]);
	result_close(result);
}

/* Between tokens. */
static void add_spread(struct result *result, const struct spread *gaps)
{
	const double values[] = {gaps->mean, gaps->p50, gaps->p95, gaps->p99, gaps->maximum};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		result_number(result, values[i]);
	report_add_spread(result, gaps);
}

static int add_request(struct result *result, const struct report_view *view, size_t index)
{
	const struct inference_request *request = &view->inference->requests.items[index];
	uint64_t begin_ns = inference_begin_ns(request), start_ns = model_start_ns(view->model);
	struct spread gaps;
	int r = inference_gaps(view->inference, request, &gaps);

	if (r < 0)
		return r;
	result_known(result, begin_ns && begin_ns >= start_ns, begin_ns - start_ns);
	result_flag(result, request->arrival_ns != 0);
	for (size_t i = 0; i < ARRAY_SIZE(request_metrics); i++)
		report_add_metric(result, request, request_metrics[i]);
	result_known(result, request->prompt_known, request->prompt_tokens);
	result_known(result, request->prompt_known, request->cached_tokens);
	result_known(result, request->batch != 0, request->batch);
	result_known(result, request->tokens_known, request->output_tokens);
	result_known(result, request->tokens_known, request->tokens);
	result_known(result, !request->of_engine, request->chunks);
	add_spread(result, &gaps);
	result_known(result, request->of_engine, request->preemptions);
	result_known(result, request->of_engine, request->preempted_ns);
	add_end(result, request->end_reason);
	add_limits(result, request, view->slo);
	report_add_joules(result, view,
		view->span_energy ? &view->joules->requests.items[index] : NULL,
		request->tokens_known ? (double)request->output_tokens : 0);
	add_gaps(result, view->inference, request);
	result_u64(result, view->model->processes.items[request->process].pid);
	result_text(result, request->id);
	return 0;
}

static int add_requests(
	struct result *result, const struct report_input *input, uint32_t *ret_table)
{
	const struct report_view *view = input->view;
	bool is_shown = input->is_json || input->is_alone;
	size_t wanted;
	int r = 0;

	*ret_table = result_open(result);
	wanted = report_rows_wanted(result, input, view->inference->requests.count);
	for (size_t i = 0; is_shown && r == 0 && i < wanted; i++)
		r = add_request(result, view, i);
	result_close(result);
	return r;
}

/* ---- of all ---- */

static void add_goodput(
	struct result *result, const struct inference *inference, const struct inference_slo *slo)
{
	struct inference_goodput goodput;

	if (!slo) {
		result_null(result);
		return;
	}
	goodput = inference_goodput_of(inference, slo);
	result_open(result);
	result_open(result);
	for (int i = 0; i < INFERENCE_METRIC_MAX; i++)
		result_known(result, slo->limits_ns[i] != 0, slo->limits_ns[i]);
	result_close(result);
	result_u64(result, goodput.judged);
	result_u64(result, goodput.met);
	result_u64(result, goodput.unjudged);
	result_number(result, goodput.share);
	result_number(result, goodput.requests_per_s);
	result_close(result);
}

static void add_ratios(struct result *result, const struct report_view *view)
{
	const struct inference_joules *joules = view->joules;
	const double ratios[] = {joules->per_output_token_j, joules->decode_per_output_token_j,
		joules->prefill_per_prompt_token_j, joules->tokens_per_j, joules->edp_js,
		joules->edp_per_token_js};

	report_add_joules_member(result, view, view->span_energy ? &joules->all : NULL);
	for (size_t i = 0; i < ARRAY_SIZE(ratios); i++) {
		if (view->span_energy)
			result_number(result, ratios[i]);
		else
			result_null(result);
	}
}

static void add_all(struct result *result, const struct report_view *view)
{
	const struct inference *inference = view->inference;
	uint64_t ended = 0, preemptions = 0;

	array_foreach (&inference->requests, request) {
		ended += request->end_reason && *request->end_reason;
		preemptions += request->preemptions;
	}
	result_u64(result, inference->tokens);
	result_u64(result, inference->output_tokens);
	result_known(result, inference->span_ns != 0, inference->span_ns);
	result_number(result, inference->tokens_per_s);
	report_add_spread(result, &inference->user_tokens_per_s);
	report_add_spread(result, &inference->prefill_tokens_per_s);
	for (int i = 0; i < INFERENCE_METRIC_MAX; i++)
		report_add_spread(result, &inference->metrics[i]);
	report_add_spread(result, &inference->itl);
	result_u64(result, inference->large_chunks);
	add_goodput(result, inference, view->slo);
	add_ratios(result, view);
	result_u64(result, ended);
	result_u64(result, preemptions);
}

static bool of_tokens(const struct report_input *input)
{
	return input->by && strcmp(input->by, BY_TOKEN) == 0;
}

static void show_requests(struct result *result, const struct report_input *input, uint32_t table)
{
	const struct report_view *view = input->view;
	struct energy_reasons reasons = {0};

	result_heading(result,
		of_tokens(input) ? "Tokens (time to the first one, and between two of a request)"
				 : "Requests");
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 8),
			.noun = "requests",
			.view = of_tokens(input) ? TOKENS : REQUESTS});
	for (size_t i = 0; view->span_energy && i < view->joules->requests.count; i++)
		energy_reasons_add(&reasons, &view->joules->requests.items[i]);
	energy_reasons_say(&reasons, view, result);
	result_heading(result, "All requests");
}

static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	uint32_t requests, metrics;
	int r;

	if (!view->inference->requests.count && of_tokens(input))
		return report_nothing(result, input,
			"There are no tokens: no process that was recorded reported any; "
			"sonde.token(), sonde_token() and the hooks for transformers and vLLM do.");
	if (!view->inference->requests.count)
		return report_nothing(result, input,
			"There are no requests: no process that was recorded reported tokens with "
			"sonde.token() or sonde_token(), generated with transformers, or ran "
			"vLLM's scheduler with hooks; sonde record --hooks says why.");
	result_open(result);
	add_all(result, view);
	r = add_requests(result, input, &requests);
	if (r < 0)
		return r;
	metrics = report_add_metrics(result, view->inference);
	result_close(result);
	if (input->is_alone)
		show_requests(result, input, requests);
	else
		result_heading(result, "Inference");
	result_show(result, metrics, &(struct result_show){0});
	report_say_rates(result, view);
	return 0;
}

static const struct report_name also[] = {{BY_TOKEN, "how fast tokens came"}, {0}};

const struct report_section inference_section = {
	.value = {.key = "inference", .kind = REPORT_OBJECT, .shape = &shape},
	.by = "request",
	.also = also,
	.summary = "how long requests to models took",
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_RANGES,
	.make = make,
};
