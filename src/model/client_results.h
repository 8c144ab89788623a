/* SPDX-License-Identifier: Apache-2.0 */
/* What a load generator measured of its requests: times as clients of a server saw them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

struct client_request {
	double start_ns; /* of a clock of its own; NaN: not said */
	double ttft_ns, e2e_ns;
	uint64_t output_tokens;
	bool failed; /* its times mean nothing */
};

struct client_results {
	ARRAY_OF(struct client_request) requests; /* in the order in which they were sent */
	ARRAY_OF(double) gaps_ns;                 /* between tokens, of all of them */
};

static inline void client_results_done(struct client_results *results)
{
	array_done(&results->requests);
	array_done(&results->gaps_ns);
}
#define _cleanup_client_results_ _cleanup_(client_results_done)
