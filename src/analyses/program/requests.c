/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/requests.h"

#include <errno.h>
#include <string.h>

#include "analyses/program/range_fields.h"
#include "base/map.h"

#define DOMAIN "vllm"
#define PREFIX "request."

struct request_key {
	uint64_t process, number;
};

static int find_request(struct requests *requests, struct intern *keys,
	const struct request_key *key, struct request **ret_request)
{
	uint32_t id;
	int r = intern_add(keys, key, sizeof(*key), &id);

	if (r > 0)
		r = array_append(&requests->rows, (struct request){
							  .id = "",
							  .number = key->number,
							  .process = (uint32_t)key->process,
							  .reason = "",
						  });
	if (r < 0)
		return r;
	*ret_request = &requests->rows.items[id];
	return 0;
}

static void end_preemption(struct request *request, uint64_t time_ns)
{
	if (request->preempted_at_ns)
		request->preempted_ns += time_ns - request->preempted_at_ns;
	request->preempted_at_ns = 0;
}

static void take_tokens(
	struct request *request, const struct model *model, const struct model_range *mark)
{
	uint64_t tokens;

	if (range_u64(model, mark, "prompt_tokens", &tokens))
		request->prompt_tokens = tokens;
	if (range_u64(model, mark, "cached_tokens", &tokens))
		request->cached_tokens = tokens;
	if (range_u64(model, mark, "output_tokens", &tokens)) {
		request->output_tokens = tokens;
		request->output_known = true;
	}
}

static void take_mark(struct requests *requests, struct request *request, const struct model *model,
	const struct model_range *mark)
{
	const char *event = mark->name + strlen(PREFIX);
	const char *id = range_text(model, mark, "id");

	if (*id)
		request->id = id;
	take_tokens(request, model, mark);
	if (strcmp(event, "added") == 0) {
		request->added_ns = mark->start_ns;
		request->waited_ns = range_u64_or_0(model, mark, "waited_ns");
	} else if (strcmp(event, "scheduled") == 0) {
		request->scheduled_ns = mark->start_ns;
	} else if (strcmp(event, "first_token") == 0) {
		request->first_token_ns = mark->start_ns;
	} else if (strcmp(event, "preempted") == 0) {
		request->preemptions++;
		requests->preemptions++;
		request->preempted_at_ns = mark->start_ns;
		if (!request->first_preempted_ns)
			request->first_preempted_ns = mark->start_ns;
	} else if (strcmp(event, "resumed") == 0) {
		end_preemption(request, mark->start_ns);
		request->last_resumed_ns = mark->start_ns;
	} else if (strcmp(event, "finished") == 0) {
		end_preemption(request, mark->start_ns);
		requests->finished += !request->finished_ns;
		request->finished_ns = mark->start_ns;
		request->reason = range_text(model, mark, "reason");
	}
}

int requests_init(struct requests *requests, const struct model *model)
{
	struct intern keys = {0};
	int r = 0;

	*requests = (struct requests){0};
	for (size_t i = 0; r == 0 && i < model->ranges.count; i++) {
		const struct model_range *mark = &model->ranges.items[i];
		struct request_key key = {.process = mark->process};
		struct request *request;

		if (!mark->is_mark || strcmp(mark->domain, DOMAIN) != 0 ||
			strncmp(mark->name, PREFIX, strlen(PREFIX)) != 0 ||
			!range_u64(model, mark, "request", &key.number))
			continue;
		r = find_request(requests, &keys, &key, &request);
		if (r == 0)
			take_mark(requests, request, model, mark);
	}
	intern_done(&keys);
	if (r < 0)
		requests_done(requests);
	return r;
}

void requests_done(struct requests *requests)
{
	array_done(&requests->rows);
}

static bool between(uint64_t from_ns, uint64_t to_ns, uint64_t *ret_ns)
{
	if (!from_ns || to_ns < from_ns)
		return false;
	*ret_ns = to_ns - from_ns;
	return true;
}

bool request_queued_ns(const struct request *request, uint64_t *ret_ns)
{
	return between(request->added_ns, request->scheduled_ns, ret_ns);
}

bool request_prefill_ns(const struct request *request, uint64_t *ret_ns)
{
	return between(request->scheduled_ns, request->first_token_ns, ret_ns);
}

bool request_first_token_ns(const struct request *request, uint64_t *ret_ns)
{
	if (!between(request->added_ns, request->first_token_ns, ret_ns))
		return false;
	*ret_ns += request->waited_ns;
	return true;
}

bool request_token_ns(const struct request *request, uint64_t *ret_ns)
{
	uint64_t decode_ns;

	if (!request->output_known || request->output_tokens < 2 ||
		!between(request->first_token_ns, request->finished_ns, &decode_ns))
		return false;
	*ret_ns = decode_ns / (request->output_tokens - 1);
	return true;
}

bool request_total_ns(const struct request *request, uint64_t *ret_ns)
{
	if (!between(request->added_ns, request->finished_ns, ret_ns))
		return false;
	*ret_ns += request->waited_ns;
	return true;
}
