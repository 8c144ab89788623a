/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the tokens of each request came. */
#include "report/inference/figures.h"
#include "report/sections.h"

static const struct report_column gap_columns[] = {
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "mean_ns", .kind = REPORT_NS},
	{.key = "p50_ns", .kind = REPORT_NS},
	{.key = "p95_ns", .kind = REPORT_NS},
	{.key = "maximum_ns", .kind = REPORT_NS},
};
static const struct report_shape gap_shape = REPORT_SHAPE(gap_columns);

static const struct report_column row_columns[] = {
	{.key = "tokens", .kind = REPORT_COUNT, .help = "marks of them"},
	{.title = "Tokens", .kind = REPORT_COUNT},
	{.key = "time_to_first_token_ns", .title = "To first", .kind = REPORT_NS},
	{.title = "To second", .kind = REPORT_NS},
	{.title = "Per token", .kind = REPORT_NS},
	{.title = "Mean gap", .kind = REPORT_NS},
	{.title = "p50", .kind = REPORT_NS},
	{.title = "p95", .kind = REPORT_NS},
	{.title = "p99", .kind = REPORT_NS},
	{.title = "Max", .kind = REPORT_NS},
	{.key = "between_tokens",
		.kind = REPORT_OBJECT,
		.shape = &gap_shape,
		.help = "null: there are none"},
	REPORT_JOULES_COLUMNS("J/token", 0),
	{.key = "pid", .kind = REPORT_INTEGER},
	{.key = "request",
		.title = "Request",
		.kind = REPORT_TEXT,
		.shrinks_to = 16,
		.unknown = REPORT_NO_REQUEST},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column columns[] = {
	{.key = "tokens", .kind = REPORT_COUNT, .help = "marks of them, also of no request"},
	{.key = "between_tokens", .kind = REPORT_OBJECT, .shape = &gap_shape},
	{.key = "requests", .kind = REPORT_ROWS, .shape = &row_shape},
	{.kind = REPORT_ROWS, .shape = &report_metrics_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_gaps(struct result *result, const struct spread *gaps)
{
	const double values[] = {gaps->mean, gaps->p50, gaps->p95, gaps->maximum};

	if (!gaps->count) {
		result_null(result);
		return;
	}
	result_open(result);
	result_u64(result, gaps->count);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		result_u64(result, (uint64_t)values[i]);
	result_close(result);
}

static void add_gap_cells(struct result *result, const struct spread *gaps)
{
	const double values[] = {gaps->mean, gaps->p50, gaps->p95, gaps->p99, gaps->maximum};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		result_number(result, values[i]);
}

static int add_row(struct result *result, const struct report_view *view, size_t index,
	struct energy_reasons *reasons)
{
	const struct inference_request *request = &view->inference->requests.items[index];
	const struct joules *joules =
		view->span_energy ? &view->joules->requests.items[index] : NULL;
	struct spread gaps;
	int r = inference_gaps(view->inference, request, &gaps);

	if (r < 0)
		return r;
	result_u64(result, request->tokens);
	result_u64(result, request->output_tokens);
	report_add_metric(result, request, INFERENCE_TTFT);
	report_add_metric(result, request, INFERENCE_TTST);
	report_add_metric(result, request, INFERENCE_TPOT);
	add_gap_cells(result, &gaps);
	add_gaps(result, &gaps);
	report_add_joules(
		result, view, joules, request->tokens_known ? (double)request->output_tokens : 0);
	if (joules)
		energy_reasons_add(reasons, joules);
	result_u64(result, view->model->processes.items[request->process].pid);
	result_text(result, request->id);
	return 0;
}

/* The whole report has them in the section of inference. */
static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->recording;
	const struct inference *inference = view->inference;
	struct energy_reasons reasons = {0};
	uint32_t rows, metrics;
	int r = 0;

	if (!inference->requests.count)
		return report_nothing(result, input,
			"There are no tokens: no process that was recorded reported any; "
			"sonde.token(), sonde_token() and the hooks for transformers and vLLM do.");
	if (!input->is_alone && !input->is_json)
		return 0;
	result_open(result);
	result_u64(result, inference->tokens);
	add_gaps(result, &inference->itl);
	rows = result_open(result);
	for (size_t i = 0; r == 0 && i < inference->requests.count; i++)
		r = add_row(result, view, i, &reasons);
	if (r < 0)
		return r;
	result_close(result);
	metrics = report_add_metrics(result, inference);
	result_close(result);
	if (!input->is_alone)
		return 0;
	result_heading(result, "Tokens (time to the first one, and between two of a request)");
	result_show(result, rows,
		&(struct result_show){
			.limit = report_rows_shown(input, 20, 8), .noun = "requests"});
	energy_reasons_say(&reasons, view, result);
	result_heading(result, "All requests");
	result_show(result, metrics, &(struct result_show){0});
	report_say_rates(result, view);
	return 0;
}

const struct report_section tokens_section = {
	.value = {.key = "tokens", .kind = REPORT_OBJECT, .shape = &shape},
	.by = "token",
	.summary = "how fast tokens came",
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_RANGES,
	.make = make,
};
