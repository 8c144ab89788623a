/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast requests to a model were answered, by the marks of sonde_token(), sonde.token() and of
 * hooks. docs/inference.md explains it.
 *
 * A request arrives at a, its prefill begins at s, its tokens come at t(1) … t(n), those that it
 * thinks with included, those of the prompt never:
 *
 *   TTFT     t(1) - a                    time to first token (MLPerf, vLLM, GenAI-Perf)
 *   TTST     t(2) - t(1)                 time to second token (aiperf)
 *   TPOT     (t(n) - t(1)) / (n - 1)     time per output token, n >= 2 (MLPerf, vLLM; aiperf calls
 *                                        this the request's inter-token latency)
 *   ITL      every t(j + 1) - t(j)       pooled over requests; where tokens come in chunks, from
 *                                        chunk to chunk and undivided
 *   E2E      t(n) - a                    (aiperf's request latency)
 *   queue    s - a
 *   prefill  t(1) - s
 *   decode   t(n) - t(1)                 with the time that it was pre-empted (vLLM)
 *
 *   tokens/s           sum of n / (last t(n) - first a)    (aiperf's output token throughput)
 *   tokens/s per user  1 / TPOT
 *   prefill tokens/s   prompt tokens that were computed, not taken from a cache, / TTFT
 *   goodput            requests that keep every limit / (last t(n) - first a)
 *                      (DistServe, OSDI '24; aiperf --goodput)
 *
 * Where a is not marked, the begin of the prefill stands for it, and the queue is not known. What
 * has an end that was not seen is not known: nothing stands in for it.
 */
#pragma once

#include "analyses/statistics.h"
#include "base/array.h"
#include "base/map.h"
#include "model/model.h"

enum inference_metric {
	INFERENCE_TTFT,
	INFERENCE_TTST,
	INFERENCE_TPOT,
	INFERENCE_E2E,
	INFERENCE_QUEUE,
	INFERENCE_PREFILL,
	INFERENCE_DECODE,
	INFERENCE_METRIC_MAX,
	INFERENCE_METRIC_INVALID = -EINVAL,
};

/* "ttft", "ttst" … */
const char *inference_metric_to_string(enum inference_metric metric);
/* "itl" is the mean of a request: "tpot". */
enum inference_metric inference_metric_from_string(const char *name, size_t length);

/* A request of a process, or the tokens of a process that name none: those are only counted. */
struct inference_request {
	const char *id;   /* "": of none */
	uint32_t process; /* index */
	/* 0: not seen. `last_ns` of one that has not ended is the last token so far. */
	uint64_t arrival_ns, prefill_ns, first_ns, second_ns, last_ns;
	/* Tokens of each of its sequences; of all of them. */
	uint64_t tokens, output_tokens;
	uint64_t chunks;        /* in which they came; 0: the marks do not say */
	uint64_t large_chunks;  /* of several tokens */
	uint64_t prompt_tokens; /* of all its sequences */
	uint64_t cached_tokens; /* of the prompt, that were not computed */
	uint64_t batch;         /* sequences; 0: not known */
	uint64_t preemptions, preempted_ns;
	/* Of an engine; 0: not seen. */
	uint64_t number, finished_ns;
	uint64_t first_preempted_ns, last_resumed_ns;
	uint64_t preempted_at_ns;    /* it is, since then */
	size_t first_gap, gap_count; /* inference->gaps.items[first_gap] … */
	const char *end_reason;      /* ""; NULL: the marks do not say */
	bool prompt_known, tokens_known;
	bool is_interrupted; /* between windows, where tokens came that were not counted */
	bool of_engine;      /* by vLLM's scheduler, not by marks of its tokens */
	bool is_named;       /* of an engine: else its number stands for the name */
	bool is_filled;      /* while it is made */
};

struct inference {
	ARRAY_OF(struct inference_request) requests; /* by their begins */
	ARRAY_OF(uint64_t) gaps;                     /* of requests, between chunks */
	uint64_t tokens;                             /* marks of them, also of no request */
	uint64_t output_tokens;                      /* of requests */
	uint64_t large_chunks;
	/* Of requests: durations in ns, and rates. */
	struct spread metrics[INFERENCE_METRIC_MAX], itl;
	struct spread user_tokens_per_s, prefill_tokens_per_s;
	uint64_t span_ns;    /* from the first begin to the last token; 0: not known */
	double tokens_per_s; /* NaN: not known */
	struct intern texts;
};

/* Returns 0 or -ENOMEM. Strings are the model's, or of `inference`. */
int inference_init(struct inference *inference, const struct model *model);
void inference_done(struct inference *inference);
#define _cleanup_inference_ _cleanup_(inference_done)

/* Of inference_init(): the requests of engines. Returns 0 or -ENOMEM. */
int inference_add_engine(struct inference *inference, const struct model *model);

/* False where it is not known. */
bool inference_duration(
	const struct inference_request *request, enum inference_metric metric, uint64_t *ret_ns);
/* When the request arrived, or else its prefill began; 0: neither was seen. */
uint64_t inference_begin_ns(const struct inference_request *request);
/* Between the chunks of one request. -ENOMEM, or 0. */
int inference_gaps(const struct inference *inference, const struct inference_request *request,
	struct spread *ret_spread);
