/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the result of vllm bench serve. */
#include <math.h>
#include <stdlib.h>

#include "importers/vllm_bench/vllm_bench.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_client_results_ struct client_results results = {0};
	struct errmsg err = {{0}};
	int r = vllm_bench_parse(&results, "x", (const char *)bytes, length, &err);

	if (r < 0 ? !err.text[0] : !results.requests.count)
		abort();
	array_foreach (&results.requests, request) {
		if (!request->failed &&
			!(request->ttft_ns >= 0 && request->e2e_ns >= request->ttft_ns))
			abort();
	}
	return 0;
}
