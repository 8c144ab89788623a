/* SPDX-License-Identifier: Apache-2.0 */
#include "report/inference/vllm_json.h"

#include "analyses/program/experts.h"
#include "analyses/program/requests.h"
#include "report/tables_json.h"

#define DEFAULT_PAIRS 100

typedef bool duration_function(const struct request *request, uint64_t *ret_ns);

static void write_duration(struct json_writer *json, const char *key, const struct request *request,
	duration_function *duration)
{
	uint64_t time_ns = 0;
	bool known = duration(request, &time_ns);

	json_member_known(json, key, known, time_ns);
}

static void write_request(
	struct json_writer *json, const struct model *model, const struct request *request)
{
	uint64_t start_ns = model_start_ns(model);

	json_begin_object(json);
	json_member_text(json, "id", request->id);
	json_member_u64(json, "number", request->number);
	json_member_u64(json, "pid", model->processes.items[request->process].pid);
	json_member_known(json, "added_ns", request->added_ns >= start_ns && request->added_ns,
		request->added_ns - start_ns);
	write_duration(json, "queued_ns", request, request_queued_ns);
	write_duration(json, "prefill_ns", request, request_prefill_ns);
	write_duration(json, "first_token_ns", request, request_first_token_ns);
	write_duration(json, "per_token_ns", request, request_token_ns);
	write_duration(json, "total_ns", request, request_total_ns);
	json_member_u64(json, "prompt_tokens", request->prompt_tokens);
	json_member_u64(json, "cached_tokens", request->cached_tokens);
	json_member_known(json, "output_tokens", request->output_known, request->output_tokens);
	json_member_u64(json, "preemptions", request->preemptions);
	json_member_u64(json, "preempted_ns", request->preempted_ns);
	json_member_text(json, "reason", request->reason);
	json_end_object(json);
}

static int write_requests(struct json_writer *json, const struct model *model, size_t limit)
{
	_cleanup_requests_ struct requests requests = {0};
	int r = requests_init(&requests, model);

	if (r < 0)
		return r;
	json_key(json, "requests");
	if (!requests.rows.count) {
		json_null(json);
		return 0;
	}
	json_begin_object(json);
	json_member_u64(json, "rows_total", requests.rows.count);
	json_member_u64(json, "finished", requests.finished);
	json_member_u64(json, "preemptions", requests.preemptions);
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; i < requests.rows.count && (!limit || i < limit); i++)
		write_request(json, model, &requests.rows.items[i]);
	json_end_array(json);
	json_end_object(json);
	return 0;
}

static void write_pairs(
	struct json_writer *json, const struct experts *experts, uint32_t layer, size_t limit)
{
	size_t count = 0;

	json_key(json, "pairs");
	json_begin_array(json);
	array_foreach (&experts->pairs, pair) {
		if (pair->layer != layer || count++ >= limit)
			continue;
		json_begin_object(json);
		json_member_u64(json, "first", pair->first);
		json_member_u64(json, "second", pair->second);
		json_member_u64(json, "count", pair->count);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_numbers(
	struct json_writer *json, const char *key, const uint64_t *numbers, size_t count)
{
	json_key(json, key);
	json_begin_array(json);
	for (size_t i = 0; i < count; i++)
		json_u64(json, numbers[i]);
	json_end_array(json);
}

static void write_layer(struct json_writer *json, const struct model *model,
	const struct experts *experts, uint32_t index, size_t limit)
{
	const struct expert_layer *layer = &experts->layers.items[index];
	const struct expert_spread *spread = &layer->spread;

	json_begin_object(json);
	json_member_u64(json, "layer", layer->number);
	json_member_text(json, "name", layer->name);
	json_member_u64(json, "pid", model->processes.items[layer->process].pid);
	json_member_u64(json, "experts", layer->experts);
	json_member_u64(json, "top_k", layer->top_k);
	json_member_u64(json, "calls", layer->calls);
	json_member_u64(json, "tokens", layer->tokens);
	json_member_u64(json, "chosen", spread->chosen);
	json_member_u64(json, "outside", layer->outside);
	json_member_u64(json, "lost_calls", layer->lost_calls);
	json_key(json, "in_cuda_graph");
	json_bool(json, layer->captured);
	json_member_u64(json, "used", spread->used);
	json_member_u64(json, "minimum", spread->minimum);
	json_member_u64(json, "maximum", spread->maximum);
	json_member_double(json, "mean", spread->mean);
	json_member_double(json, "deviation", spread->deviation);
	json_member_double(json, "balance", spread->balance);
	write_numbers(json, "counts",
		layer->experts ? &experts->counts.items[layer->first_count] : NULL, layer->experts);
	write_numbers(json, "weights_by_tenth", layer->weights, EXPERT_WEIGHT_BINS);
	json_key(json, "pairs_left_out");
	json_bool(json, layer->pairs_left_out);
	write_pairs(json, experts, index, limit);
	json_end_object(json);
}

static int write_experts(struct json_writer *json, const struct model *model, size_t limit)
{
	_cleanup_experts_ struct experts experts = {0};
	int r = experts_init(&experts, model);

	if (r < 0)
		return r;
	json_key(json, "experts");
	if (!experts.layers.count) {
		json_null(json);
		return 0;
	}
	json_begin_object(json);
	json_key(json, "layers");
	json_begin_array(json);
	for (uint32_t i = 0; i < experts.layers.count; i++)
		write_layer(json, model, &experts, i, limit ? limit : DEFAULT_PAIRS);
	json_end_array(json);
	json_end_object(json);
	return 0;
}

int report_vllm_json(struct json_writer *json, const struct model *model, size_t limit)
{
	int r = write_requests(json, model, limit);

	return r ?: write_experts(json, model, limit);
}
