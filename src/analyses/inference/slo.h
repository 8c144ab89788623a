/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that a service promises to keep, and how many requests kept them. */
#pragma once

#include "analyses/inference/inference.h"
#include "base/errmsg.h"

struct inference_slo {
	uint64_t limits_ns[INFERENCE_METRIC_MAX]; /* 0: none */
};

/*
 * "ttft=200ms,tpot=50ms": a metric's name, and a number with ns, us, ms or s; "itl" is "tpot". Or a
 * limit of MLPerf Inference, "mlperf:llama2-70b", which says p99. Returns 0, or -EINVAL with a
 * sentence.
 */
int inference_slo_parse(struct inference_slo *ret_slo, const char *text, struct errmsg *err);

struct inference_goodput {
	uint64_t judged, met;
	uint64_t unjudged;     /* something that has a limit is not known of them */
	double requests_per_s; /* NaN: not known */
	double share;          /* of those that were judged; NaN: of none */
};

/*
 * A request keeps its limits when it keeps every one of them. A limit of what a request of one
 * token does not have (tpot, ttst) is kept by it.
 */
struct inference_goodput inference_goodput_of(
	const struct inference *inference, const struct inference_slo *slo);
/* Of one request: 1, 0; -ENODATA: not known. */
int inference_slo_met(const struct inference_request *request, const struct inference_slo *slo);
