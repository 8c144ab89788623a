/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests as a load generator's clients saw them beside the same requests of the server: what the
 * way between them took, which is the network, HTTP, the text made tokens and tokens made text.
 *
 * The n-th request that was sent is the n-th that arrived. The server may have had others before,
 * as the one by which a generator tests whether it answers, and after: of the places that the
 * sequence may have the one counts where most requests have as many output tokens.
 */
#pragma once

#include "analyses/inference/inference.h"
#include "model/client_results.h"

struct client_use {
	uint64_t requests, failed; /* of the client */
	uint64_t joined;           /* with a request of the server that has a first token */
	uint64_t same_tokens;      /* of these, with as many output tokens on both sides */
	struct spread client_ttft, server_ttft,
		way_ttft; /* of those joined; the way: per request */
	struct spread client_e2e, server_e2e;
	struct spread client_itl, server_itl; /* of all gaps */
};

/* Returns 0 or -ENOMEM. */
int client_use_init(struct client_use *use, const struct client_results *results,
	const struct inference *inference);
