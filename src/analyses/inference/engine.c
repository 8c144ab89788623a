/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of an engine, from the marks that the hooks for vLLM write: docs/vllm.md. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyses/inference/inference.h"
#include "analyses/program/range_fields.h"

#define DOMAIN "vllm"
#define PREFIX "request."

struct request_key {
	uint64_t process, number;
};

static int find_request(struct inference *inference, struct intern *keys, size_t first,
	const struct request_key *key, struct inference_request **ret_request)
{
	uint32_t id;
	int r = intern_add(keys, key, sizeof(*key), &id);

	if (r > 0)
		r = array_append(&inference->requests, (struct inference_request){
							       .id = "",
							       .number = key->number,
							       .process = (uint32_t)key->process,
							       .first_gap = inference->gaps.count,
							       .end_reason = "",
							       .of_engine = true,
						       });
	if (r < 0)
		return r;
	*ret_request = &inference->requests.items[first + id];
	return 0;
}

static void end_preemption(struct inference_request *request, uint64_t time_ns)
{
	if (request->preempted_at_ns)
		request->preempted_ns += time_ns - request->preempted_at_ns;
	request->preempted_at_ns = 0;
}

static void take_tokens(struct inference_request *request, const struct model *model,
	const struct model_range *mark)
{
	uint64_t tokens;

	if (range_u64(model, mark, "prompt_tokens", &tokens))
		request->prompt_tokens = tokens;
	if (range_u64(model, mark, "cached_tokens", &tokens))
		request->cached_tokens = tokens;
	if (range_u64(model, mark, "output_tokens", &tokens)) {
		request->tokens = request->output_tokens = tokens;
		request->tokens_known = true;
	}
}

static void take_mark(struct inference_request *request, const struct model *model,
	const struct model_range *mark)
{
	const char *event = mark->name + strlen(PREFIX), *id = range_text(model, mark, "id");
	uint64_t waited_ns;

	if (*id)
		request->id = id;
	take_tokens(request, model, mark);
	if (strcmp(event, "added") == 0) {
		waited_ns = range_u64_or_0(model, mark, "waited_ns"); /* in the server */
		request->arrival_ns = mark->start_ns - (waited_ns < mark->start_ns ? waited_ns : 0);
	} else if (strcmp(event, "scheduled") == 0) {
		request->prefill_ns = mark->start_ns;
	} else if (strcmp(event, "first_token") == 0) {
		request->first_ns = mark->start_ns;
	} else if (strcmp(event, "preempted") == 0) {
		request->preemptions++;
		request->preempted_at_ns = mark->start_ns;
		if (!request->first_preempted_ns)
			request->first_preempted_ns = mark->start_ns;
	} else if (strcmp(event, "resumed") == 0) {
		end_preemption(request, mark->start_ns);
		request->last_resumed_ns = mark->start_ns;
	} else if (strcmp(event, "finished") == 0) {
		end_preemption(request, mark->start_ns);
		request->finished_ns = mark->start_ns;
		request->end_reason = range_text(model, mark, "reason");
	}
}

static int finish(struct inference *inference, struct inference_request *request)
{
	char name[32];
	uint32_t id;
	int r;

	request->last_ns = request->first_ns ? request->finished_ns : 0; /* else it had none */
	request->prompt_known = request->prompt_tokens > 0;
	request->cached_tokens = MIN(request->cached_tokens, request->prompt_tokens);
	request->is_named = *request->id != '\0';
	if (request->is_named)
		return 0;
	snprintf(name, sizeof(name), "[%" PRIu64 "]", request->number);
	r = intern_add(&inference->texts, name, strlen(name), &id);
	if (r < 0)
		return r;
	request->id = intern_get(&inference->texts, id);
	return 0;
}

int inference_add_engine(struct inference *inference, const struct model *model)
{
	size_t first = inference->requests.count;
	struct intern keys = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->ranges.count; i++) {
		const struct model_range *mark = &model->ranges.items[i];
		struct request_key key = {.process = mark->process};
		struct inference_request *request;

		if (!mark->is_mark || strcmp(mark->domain, DOMAIN) != 0 ||
			strncmp(mark->name, PREFIX, strlen(PREFIX)) != 0 ||
			!range_u64(model, mark, "request", &key.number))
			continue;
		r = find_request(inference, &keys, first, &key, &request);
		if (r == 0)
			take_mark(request, model, mark);
	}
	for (size_t i = first; r == 0 && i < inference->requests.count; i++)
		r = finish(inference, &inference->requests.items[i]);
	intern_done(&keys);
	return r;
}
