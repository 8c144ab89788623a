/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to an inference engine, from the marks that the hooks write: docs/vllm.md. */
#pragma once

#include "base/array.h"
#include "model/model.h"

/* Times are 0 where the mark is not in the capture: before its begin, after its end. */
struct request {
	const char *id; /* "" where it was not told */
	uint64_t number;
	uint32_t process; /* index */
	uint64_t added_ns, scheduled_ns, first_token_ns, finished_ns;
	uint64_t waited_ns; /* before it was added, in the server */
	uint64_t prompt_tokens, cached_tokens, output_tokens;
	uint64_t preemptions;
	uint64_t first_preempted_ns, last_resumed_ns;
	uint64_t preempted_ns;    /* not running, all pre-emptions together */
	uint64_t preempted_at_ns; /* it is, since then; else 0 */
	const char *reason;       /* of its end; "" */
	bool output_known;
};

struct requests {
	ARRAY_OF(struct request) rows; /* in the order in which they were first told of */
	uint64_t finished, preemptions;
};

/* Returns 0 or -ENOMEM. Strings are the model's. */
int requests_init(struct requests *requests, const struct model *model);
void requests_done(struct requests *requests);
#define _cleanup_requests_ _cleanup_(requests_done)

/* Durations; false where one of the ends is not known. */
bool request_queued_ns(const struct request *request, uint64_t *ret_ns);
/* From the first batch that it was in to the first token. */
bool request_prefill_ns(const struct request *request, uint64_t *ret_ns);
/* From when it was added to its first token, and with the time before it was added. */
bool request_first_token_ns(const struct request *request, uint64_t *ret_ns);
/* Between two tokens after the first, on average. */
bool request_token_ns(const struct request *request, uint64_t *ret_ns);
bool request_total_ns(const struct request *request, uint64_t *ret_ns);
