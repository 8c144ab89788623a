/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as vLLM's scheduler reports them, in JSON; the table of requests has them, too. */
#include "analyses/program/requests.h"

#include "report/sections.h"
#include "report/view.h"

static const struct report_column row_columns[] = {
	{.key = "id", .kind = REPORT_TEXT, .help = "null: it came before the window"},
	{.key = "number", .kind = REPORT_INTEGER, .help = "in its process"},
	{.key = "pid", .kind = REPORT_INTEGER},
	{.key = "added_ns", .kind = REPORT_NS, .help = "since the recording began"},
	{.key = "queued_ns", .kind = REPORT_NS},
	{.key = "prefill_ns", .kind = REPORT_NS},
	{.key = "first_token_ns", .kind = REPORT_NS},
	{.key = "per_token_ns", .kind = REPORT_NS},
	{.key = "total_ns", .kind = REPORT_NS},
	{.key = "prompt_tokens", .kind = REPORT_COUNT},
	{.key = "cached_tokens", .kind = REPORT_COUNT},
	{.key = "output_tokens", .kind = REPORT_COUNT},
	{.key = "preemptions", .kind = REPORT_COUNT},
	{.key = "preempted_ns", .kind = REPORT_NS},
	{.key = "reason", .kind = REPORT_TEXT, .help = "of its end; null: not seen"},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column columns[] = {
	{.key = "rows_total", .kind = REPORT_COUNT},
	{.key = "finished", .kind = REPORT_COUNT},
	{.key = "preemptions", .kind = REPORT_COUNT},
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

typedef bool duration_function(const struct request *request, uint64_t *ret_ns);

static void add_row(struct result *result, const struct model *model, const struct request *request)
{
	static duration_function *const durations[] = {request_queued_ns, request_prefill_ns,
		request_first_token_ns, request_token_ns, request_total_ns};
	uint64_t start_ns = model_start_ns(model);

	result_text(result, request->id);
	result_u64(result, request->number);
	result_u64(result, model->processes.items[request->process].pid);
	result_known(result, request->added_ns >= start_ns && request->added_ns,
		request->added_ns - start_ns);
	for (size_t i = 0; i < ARRAY_SIZE(durations); i++) {
		uint64_t time_ns = 0;
		bool is_known = durations[i](request, &time_ns);

		result_known(result, is_known, time_ns);
	}
	result_u64(result, request->prompt_tokens);
	result_u64(result, request->cached_tokens);
	result_known(result, request->output_known, request->output_tokens);
	result_u64(result, request->preemptions);
	result_u64(result, request->preempted_ns);
	result_text(result, request->reason);
}

static int make(struct result *result, const struct report_input *input)
{
	const struct model *model = input->recording->model;
	_cleanup_requests_ struct requests requests = {0};
	int r = input->is_json ? requests_init(&requests, model) : 0;

	if (r < 0 || !requests.rows.count)
		return r;
	result_open(result);
	result_u64(result, requests.rows.count);
	result_u64(result, requests.finished);
	result_u64(result, requests.preemptions);
	result_open(result);
	for (size_t i = 0; i < report_rows_wanted(input, requests.rows.count); i++)
		add_row(result, model, &requests.rows.items[i]);
	result_close(result);
	result_close(result);
	return 0;
}

const struct report_section engine_section = {
	.value = {.key = "requests", .kind = REPORT_OBJECT, .shape = &shape, .help = "of vLLM"},
	.by = "request",
	.needs = REPORT_NEEDS_RECORDING,
	.comes_along = true,
	.shows = SELECTION_RANGES,
	.make = make,
};
