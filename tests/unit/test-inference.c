/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of inference from marks with known times: definitions, limits, phases, layers, costs. */
#include "inference-example.h"

#include <errno.h>
#include <math.h>

#include "analyses/inference/cost.h"
#include "analyses/inference/layers.h"
#include "analyses/inference/phases.h"
#include "analyses/inference/slo.h"

static uint64_t duration(const struct inference_request *request, enum inference_metric metric)
{
	uint64_t time_ns = 0;

	assert_true(inference_duration(request, metric, &time_ns));
	return time_ns;
}

static bool is_known(const struct inference_request *request, enum inference_metric metric)
{
	uint64_t time_ns;

	return inference_duration(request, metric, &time_ns);
}

/*
 * Request a: queued at 10 ms, its prefill from 30, tokens at 100, 110, 130, 190. Request b, at the
 * same time: prefill from 50, one token at 150.
 */
static struct model *two_requests(void)
{
	struct example example;

	example_inference_begin(&example);
	example_token(&example, 10 * MS, "a", 0, "queued");
	example_token(&example, 30 * MS, "a", 0, "prefill");
	example_token(&example, 50 * MS, "b", 0, "prefill");
	example_token(&example, 100 * MS, "a", 0, "decode");
	example_token(&example, 110 * MS, "a", 1, "decode");
	example_token(&example, 130 * MS, "a", 2, "decode");
	example_token(&example, 150 * MS, "b", 0, "decode");
	example_token(&example, 190 * MS, "a", 3, "decode");
	example_token(&example, 195 * MS, "a", 0, "done");
	return example_end(&example);
}

static void test_definitions(void **state _unused_)
{
	_cleanup_model_ struct model *model = two_requests();
	_cleanup_inference_ struct inference inference = {0};
	const struct inference_request *a, *b;

	assert_int_equal(inference_init(&inference, model), 0);
	assert_int_equal(inference.requests.count, 2);
	a = &inference.requests.items[0];
	b = &inference.requests.items[1];
	assert_string_equal(a->id, "a");
	assert_int_equal(duration(a, INFERENCE_QUEUE), 20 * MS);
	assert_int_equal(duration(a, INFERENCE_PREFILL), 70 * MS);
	assert_int_equal(duration(a, INFERENCE_TTFT), 90 * MS); /* with the queue */
	assert_int_equal(duration(a, INFERENCE_TTST), 10 * MS);
	assert_int_equal(duration(a, INFERENCE_TPOT), 30 * MS);
	assert_int_equal(duration(a, INFERENCE_DECODE), 90 * MS);
	assert_int_equal(duration(a, INFERENCE_E2E), 180 * MS);
	assert_string_equal(a->end_reason, "done");
	/* Of one token there is no time between two, and no rate of a user. */
	assert_int_equal(duration(b, INFERENCE_TTFT), 100 * MS);
	assert_false(is_known(b, INFERENCE_TPOT));
	assert_false(is_known(b, INFERENCE_TTST));
	assert_false(is_known(b, INFERENCE_QUEUE)); /* its arrival was not marked */
	assert_int_equal(inference.metrics[INFERENCE_TPOT].count, 1);
	assert_int_equal(inference.user_tokens_per_s.count, 1);
	assert_true(fabs(inference.user_tokens_per_s.p50 - 1000.0 / 30) < 1e-9);
	/* Output tokens of both, from the first begin to the last token. */
	assert_int_equal(inference.output_tokens, 5);
	assert_int_equal(inference.span_ns, 180 * MS);
	assert_true(fabs(inference.tokens_per_s - 5 / 0.18) < 1e-9);
	assert_int_equal(inference.itl.count, 3);
	assert_true(inference.itl.minimum == 10 * MS && inference.itl.maximum == 60 * MS);
}

/* The profiler before this one gave the first token 50 ms that nobody had measured. */
static void test_no_first_token_is_invented(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_inference_ struct inference inference = {0};
	const struct inference_request *request;

	example_inference_begin(&example);
	example_token(&example, 100 * MS, "begin not seen", 5, "decode");
	example_token(&example, 140 * MS, "begin not seen", 6, "decode");
	example_token(&example, 150 * MS, "no token yet", 0, "prefill");
	model = example_infer(&example, &inference);
	request = &inference.requests.items[0];
	assert_string_equal(request->id, "begin not seen");
	assert_int_equal(request->tokens, 2);
	assert_false(is_known(request, INFERENCE_TTFT));
	assert_false(is_known(request, INFERENCE_E2E));
	assert_false(is_known(request, INFERENCE_PREFILL));
	assert_int_equal(duration(request, INFERENCE_TPOT), 40 * MS);
	request = &inference.requests.items[1];
	assert_int_equal(request->tokens, 0);
	for (int i = 0; i < INFERENCE_METRIC_MAX; i++)
		assert_false(is_known(request, (enum inference_metric)i));
	assert_int_equal(inference.metrics[INFERENCE_TTFT].count, 0);
	assert_true(isnan(inference.metrics[INFERENCE_TTFT].p50));
	assert_true(isnan(inference.tokens_per_s)); /* no request was seen from its begin on */
}

/* Nor is a token that came between two windows: 100 to 200 ms, and 300 to 400. */
static void test_tokens_between_windows(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_inference_ struct inference inference = {0};
	const struct inference_request *begun, *counted, *uncounted;

	example_inference_begin(&example);
	for (uint32_t i = 0; i < 2; i++) {
		const struct capture_window window = {
			.number = i + 1,
			.begin_ns = (100 + 200 * i) * MS,
			.end_ns = (200 + 200 * i) * MS,
			.opened_by = CAPTURE_TRIGGER_MANUAL,
			.closed_by = CAPTURE_REASON_TRIGGER,
		};

		assert_int_equal(model_builder_visitor.window(example.builder, &window), 0);
	}
	example_token(&example, 150 * MS, "begun", 0, "prefill");
	example_token(&example, 160 * MS, "counted", 3, "decode");
	example_token(&example, 170 * MS, "uncounted", 0, "decode");
	example_token(&example, 320 * MS, "begun", 0, "decode");
	example_token(&example, 330 * MS, "counted", 20, "decode");
	example_token(&example, 340 * MS, "counted", 21, "decode");
	example_token(&example, 350 * MS, "uncounted", 0, "decode");
	model = example_infer(&example, &inference);
	counted = &inference.requests.items[0];
	uncounted = &inference.requests.items[1];
	begun = &inference.requests.items[2];
	assert_string_equal(counted->id, "counted");
	assert_string_equal(uncounted->id, "uncounted");
	assert_false(is_known(begun, INFERENCE_TTFT));
	assert_int_equal(duration(counted, INFERENCE_TPOT), 10 * MS); /* 180 ms for 18 tokens */
	assert_int_equal(counted->gap_count, 1);
	assert_int_equal(inference.gaps.items[counted->first_gap], 10 * MS);
	assert_false(is_known(uncounted, INFERENCE_TPOT));
	assert_int_equal(uncounted->gap_count, 0);
}

/* A rate over no time is not known. */
static void test_zero_durations(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_inference_ struct inference inference = {0};

	example_inference_begin(&example);
	example_token(&example, 100 * MS, "a", 0, "prefill");
	example_token(&example, 100 * MS, "a", 0, "decode");
	example_token(&example, 100 * MS, "a", 1, "decode");
	model = example_infer(&example, &inference);
	assert_int_equal(duration(&inference.requests.items[0], INFERENCE_TPOT), 0);
	assert_int_equal(inference.user_tokens_per_s.count, 0);
	assert_true(isnan(inference.tokens_per_s));
	assert_int_equal(inference.span_ns, 0);
}

/* Indices say how many tokens came at once; where they do not rise, each mark is a token. */
static void test_chunks(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_inference_ struct inference inference = {0};
	const struct inference_request *chunks, *same;

	example_inference_begin(&example);
	example_token(&example, 10 * MS, "chunks", 0, "prefill");
	example_token(&example, 20 * MS, "chunks", 0, "decode");
	example_token(&example, 50 * MS, "chunks", 3, "decode"); /* tokens 1, 2 and 3 */
	example_token(&example, 60 * MS, "chunks", 4, "decode");
	example_token(&example, 110 * MS, "same", 0, "prefill");
	for (uint64_t i = 0; i < 3; i++) /* ids of a vocabulary, perhaps */
		example_token(&example, (120 + i * 10) * MS, "same", i == 1 ? 9000 : 17, "decode");
	model = example_infer(&example, &inference);
	chunks = &inference.requests.items[0];
	assert_int_equal(chunks->tokens, 5);
	assert_int_equal(chunks->chunks, 3);
	assert_int_equal(chunks->large_chunks, 1);
	assert_int_equal(chunks->gap_count, 2); /* undivided */
	assert_int_equal(inference.gaps.items[chunks->first_gap], 30 * MS);
	assert_int_equal(duration(chunks, INFERENCE_TTST), 30 * MS);
	assert_int_equal(duration(chunks, INFERENCE_TPOT), 10 * MS);
	same = &inference.requests.items[1];
	assert_int_equal(same->tokens, 3);
	assert_int_equal(same->large_chunks, 0);
	assert_int_equal(inference.large_chunks, 1);
}

/* A name that is used again is another request; tokens of no request are counted alone. */
static void test_names(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_inference_ struct inference inference = {0};

	example_inference_begin(&example);
	for (uint64_t i = 0; i < 3; i++) {
		example_token(&example, (100 * i + 10) * MS, "again", 0, "prefill");
		example_token(&example, (100 * i + 30 + i) * MS, "again", 0, "decode");
		example_token(&example, (100 * i + 40 + i) * MS, "again", 1, "decode");
		example_token(&example, (100 * i + 50) * MS, "", 0, "decode");
	}
	model = example_infer(&example, &inference);
	assert_int_equal(inference.requests.count, 4);
	assert_int_equal(inference.tokens, 9);
	for (size_t i = 0; i < 3; i++) {
		const struct inference_request *request = &inference.requests.items[1 + i];

		assert_string_equal(request->id, "again");
		assert_int_equal(duration(request, INFERENCE_TTFT), (20 + i) * MS);
		assert_int_equal(duration(request, INFERENCE_TPOT), 10 * MS);
	}
	assert_string_equal(inference.requests.items[0].id, "");
	assert_int_equal(inference.requests.items[0].tokens, 3);
	for (int i = 0; i < INFERENCE_METRIC_MAX; i++)
		assert_false(is_known(&inference.requests.items[0], (enum inference_metric)i));
	assert_int_equal(inference.itl.count, 3);
}

/* Each sequence of a batch gets a token at once; tokens of prompts are no output. */
static void test_batches_and_prompts(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_inference_ struct inference inference = {0};
	const struct inference_request *request;

	example_inference_begin(&example);
	example_begin_range(&example, 10 * MS, "transformers", "generate",
		FIELDS(TEXT("request", "1"), NUMBER("batch", 4), NUMBER("prompt_tokens", 50)));
	example_token(&example, 10 * MS, "1", 0, "prefill");
	example_token(&example, 110 * MS, "1", 0, "decode");
	example_token(&example, 210 * MS, "1", 1, "decode");
	example_end_range(&example, 210 * MS, "transformers");
	model = example_infer(&example, &inference);
	request = &inference.requests.items[0];
	assert_int_equal(request->tokens, 2);
	assert_int_equal(request->output_tokens, 8);
	assert_int_equal(request->prompt_tokens, 200);
	assert_int_equal(duration(request, INFERENCE_TPOT), 100 * MS);
	assert_true(fabs(inference.tokens_per_s - 8 / 0.2) < 1e-9);
	assert_true(fabs(inference.prefill_tokens_per_s.p50 - 200 / 0.1) < 1e-9);
}

/* vLLM's scheduler says when; a request that was aborted before its first token has no end. */
static void test_requests_of_an_engine(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_inference_ struct inference inference = {0};
	const struct inference_request *request, *aborted;

	example_inference_begin(&example);
	example_mark(&example, 12 * MS, "request.added", NUMBER("request", 1), TEXT("id", "one"),
		NUMBER("prompt_tokens", 10), NUMBER("waited_ns", 2 * MS));
	example_mark(&example, 13 * MS, "request.added", NUMBER("request", 2));
	example_mark(&example, 15 * MS, "request.scheduled", NUMBER("request", 1),
		NUMBER("cached_tokens", 4));
	example_mark(&example, 20 * MS, "request.first_token", NUMBER("request", 1));
	example_mark(&example, 22 * MS, "request.preempted", NUMBER("request", 1));
	example_mark(&example, 25 * MS, "request.resumed", NUMBER("request", 1));
	example_mark(&example, 30 * MS, "request.finished", NUMBER("request", 1),
		TEXT("reason", "stop"), NUMBER("output_tokens", 6));
	example_mark(&example, 31 * MS, "request.finished", NUMBER("request", 2),
		TEXT("reason", "abort"), NUMBER("output_tokens", 0));
	model = example_infer(&example, &inference);
	assert_int_equal(inference.requests.count, 2);
	request = &inference.requests.items[0];
	assert_string_equal(request->id, "one");
	assert_int_equal(duration(request, INFERENCE_QUEUE), 5 * MS);
	assert_int_equal(duration(request, INFERENCE_TTFT), 10 * MS);
	assert_int_equal(duration(request, INFERENCE_TPOT), 2 * MS);
	assert_int_equal(duration(request, INFERENCE_E2E), 20 * MS);
	assert_int_equal(request->preempted_ns, 3 * MS);
	assert_int_equal(inference.output_tokens, 6);
	/* Of the prompt 6 were computed. */
	assert_true(fabs(inference.prefill_tokens_per_s.p50 - 6 / 0.01) < 1e-9);
	aborted = &inference.requests.items[1];
	assert_string_equal(aborted->end_reason, "abort");
	assert_string_equal(aborted->id, "[2]");
	for (int i = 0; i < INFERENCE_METRIC_MAX; i++)
		assert_false(is_known(aborted, (enum inference_metric)i));
}

static void test_percentiles(void **state _unused_)
{
	struct spread_values values = {0};
	struct spread spread = spread_of(&values);

	assert_int_equal(spread.count, 0);
	assert_true(isnan(spread.p50) && isnan(spread.mean));
	for (int i = 200; i > 0; i--)
		assert_int_equal(array_append(&values.items, i), 0);
	spread = spread_of(&values);
	assert_true(spread.p50 == 100.5 && spread.p90 == 180 && spread.p95 == 190);
	assert_true(spread.p99 == 198 && spread.maximum == 200 && spread.minimum == 1);
	assert_true(spread.mean == 100.5);
	assert_true(spread_of_times(&values).p50 == 100);
	array_clear(&values.items);
	assert_int_equal(array_append(&values.items, 3), 0);
	spread = spread_of(&values);
	assert_true(spread.p50 == 3 && spread.p99 == 3 && spread.count == 1);
	array_done(&values.items);
}

/* ---- limits ---- */

static void test_limits(void **state _unused_)
{
	struct inference_slo slo;
	struct errmsg err;
	static const char *const wrong[] = {"", "ttft", "ttft=", "ttft=200", "ttft=ms", "ttft=0ms",
		"ttft=-1ms", "ttft=200min", "nope=1ms", "ttft=200ms,", "ttft=1ms,ttft=2ms",
		"mlperf:", "mlperf:gpt-9", "ttft=nanms", "ttft=1e30s", "ttft=200ms tpot=1ms"};

	assert_int_equal(inference_slo_parse(&slo, "ttft=200ms,itl=3.40ms,e2e=2s", &err), 0);
	assert_int_equal(slo.limits_ns[INFERENCE_TTFT], 200 * MS);
	assert_int_equal(slo.limits_ns[INFERENCE_TPOT], 3400000);
	assert_int_equal(slo.limits_ns[INFERENCE_E2E], 2000 * MS);
	assert_int_equal(slo.limits_ns[INFERENCE_QUEUE], 0);
	assert_int_equal(inference_slo_parse(&slo, "tpot=500us", &err), 0);
	assert_int_equal(slo.limits_ns[INFERENCE_TPOT], 500000);
	assert_int_equal(slo.limits_ns[INFERENCE_TTFT], 0);
	assert_int_equal(inference_slo_parse(&slo, "mlperf:llama2-70b-interactive", &err), 0);
	assert_int_equal(slo.limits_ns[INFERENCE_TTFT], 450 * MS);
	assert_int_equal(slo.limits_ns[INFERENCE_TPOT], 40 * MS);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (inference_slo_parse(&slo, wrong[i], &err) != -EINVAL)
			fail_msg("'%s' was taken", wrong[i]);
		assert_non_null(strstr(err.text, "--slo"));
	}
}

static void test_goodput(void **state _unused_)
{
	_cleanup_model_ struct model *model = two_requests();
	_cleanup_inference_ struct inference inference = {0};
	struct inference_goodput goodput;
	struct inference_slo slo;
	struct errmsg err;

	assert_int_equal(inference_init(&inference, model), 0);
	assert_int_equal(inference_slo_parse(&slo, "ttft=95ms", &err), 0);
	goodput = inference_goodput_of(&inference, &slo);
	assert_int_equal(goodput.judged, 2);
	assert_int_equal(goodput.met, 1);
	assert_true(goodput.share == 0.5);
	assert_true(fabs(goodput.requests_per_s - 1 / 0.18) < 1e-9);
	/* All limits count; b's only token is no fault of its. */
	assert_int_equal(inference_slo_parse(&slo, "ttft=100ms,tpot=29ms", &err), 0);
	goodput = inference_goodput_of(&inference, &slo);
	assert_int_equal(goodput.judged, 2);
	assert_int_equal(goodput.met, 1);
	/* What is not known is not judged: unless something else broke a limit. */
	assert_int_equal(inference_slo_parse(&slo, "queue=20ms", &err), 0);
	goodput = inference_goodput_of(&inference, &slo);
	assert_int_equal(goodput.judged, 1);
	assert_int_equal(goodput.unjudged, 1);
	assert_int_equal(goodput.met, 1);
	assert_int_equal(inference_slo_parse(&slo, "queue=1s,ttft=95ms", &err), 0);
	goodput = inference_goodput_of(&inference, &slo);
	assert_int_equal(goodput.judged, 2);
	assert_int_equal(goodput.met, 1);
}

/* ---- phases ---- */

/* The profiler before this one had the prefill end when generate() had begun, so that all of it was
 * decode. */
static void test_prefill_is_not_decode(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_inference_ struct inference inference = {0};
	_cleanup_phase_use_ struct phase_use use = {0};
	const struct phase_row *prefill, *decode;

	example_inference_begin(&example);
	example_token(&example, 10 * MS, "a", 0, "prefill");
	example_token(&example, 110 * MS, "a", 0, "decode");
	example_token(&example, 130 * MS, "a", 1, "decode");
	example_samples(&example, PID, PID, 0, 15 * MS, 90);
	example_samples(&example, PID, PID, 0, 112 * MS, 10);
	example_samples(&example, PID, PID, 0, 140 * MS, 5);
	model = example_infer(&example, &inference);
	assert_int_equal(phase_use_init(&use, model, NULL, &inference), 0);
	prefill = &use.rows[INFERENCE_PHASE_PREFILL];
	decode = &use.rows[INFERENCE_PHASE_DECODE];
	assert_int_equal(prefill->total_ns, 100 * MS);
	assert_int_equal(prefill->cost.samples, 90);
	assert_false(prefill->tokens_known);
	assert_int_equal(decode->total_ns, 20 * MS);
	assert_int_equal(decode->cost.samples, 10);
	assert_int_equal(decode->tokens, 2);
	assert_false(use.overlaps);
}

/* The ranges of a process are its phases, and what its requests say is not added to them. */
static void test_phases_of_ranges(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_inference_ struct inference inference = {0};
	_cleanup_phase_use_ struct phase_use use = {0};

	example_inference_begin(&example);
	example_begin_range(&example, 1 * MS, "sonde", "pre_inference", NULL, 0);
	example_end_range(&example, 4 * MS, "sonde");
	example_begin_range(&example, 10 * MS, "transformers", "generate",
		FIELDS(TEXT("request", "1"), NUMBER("batch", 1), NUMBER("prompt_tokens", 7)));
	example_begin_range(&example, 10 * MS, "transformers", "prefill", NULL, 0);
	example_token(&example, 10 * MS, "1", 0, "prefill");
	example_end_range(&example, 50 * MS, "transformers");
	example_begin_range(&example, 50 * MS, "transformers", "decode", NULL, 0);
	example_token(&example, 51 * MS, "1", 0, "decode");
	example_token(&example, 61 * MS, "1", 1, "decode");
	example_end_range(&example, 62 * MS, "transformers");
	example_end_range(&example, 62 * MS, "transformers");
	example_begin_range(&example, 70 * MS, "other", "decode", NULL, 0);
	example_end_range(&example, 90 * MS, "other");
	model = example_infer(&example, &inference);
	assert_int_equal(phase_use_init(&use, model, NULL, &inference), 0);
	assert_int_equal(use.rows[INFERENCE_PHASE_PRE].total_ns, 3 * MS);
	assert_int_equal(use.rows[INFERENCE_PHASE_PREFILL].count, 1);
	assert_int_equal(use.rows[INFERENCE_PHASE_PREFILL].total_ns, 40 * MS);
	assert_int_equal(use.rows[INFERENCE_PHASE_PREFILL].tokens, 7);
	assert_int_equal(use.rows[INFERENCE_PHASE_DECODE].total_ns, 12 * MS);
	assert_int_equal(use.rows[INFERENCE_PHASE_DECODE].tokens, 2);
	assert_int_equal(use.rows[INFERENCE_PHASE_MIXED].count, 0);
}

static void test_phases_at_once(void **state _unused_)
{
	_cleanup_model_ struct model *model = two_requests();
	_cleanup_inference_ struct inference inference = {0};
	_cleanup_phase_use_ struct phase_use use = {0};

	assert_int_equal(inference_init(&inference, model), 0);
	assert_int_equal(phase_use_init(&use, model, NULL, &inference), 0);
	assert_true(use.overlaps);
	assert_int_equal(use.rows[INFERENCE_PHASE_PREFILL].count, 2);
	assert_int_equal(use.rows[INFERENCE_PHASE_PREFILL].total_ns, 170 * MS);
	assert_int_equal(use.rows[INFERENCE_PHASE_PREFILL].covered_ns, 120 * MS);
	assert_int_equal(use.rows[INFERENCE_PHASE_DECODE].total_ns, 90 * MS);
}

/* ---- layers ---- */

static void part(
	struct example *example, uint64_t from_ms, uint64_t to_ms, uint64_t layer, const char *role)
{
	example_begin_range(example, from_ms * MS, "sonde.model", role,
		FIELDS(NUMBER("layer", layer), TEXT("role", role)));
	example_end_range(example, to_ms * MS, "sonde.model");
}

/* A forward pass of 100 ms: the embedding 10, two layers of 40 each, and 10 besides. */
static struct model *a_pass(void)
{
	struct example example;

	example_inference_begin(&example);
	example_begin_range(&example, 0, "sonde.model", "step",
		FIELDS(TEXT("role", "step"), NUMBER("instrumented", 1), NUMBER("tokens", 1)));
	example_begin_range(
		&example, 5 * MS, "sonde.model", "embed", FIELDS(TEXT("role", "embed")));
	example_end_range(&example, 15 * MS, "sonde.model");
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t at = 15 + i * 40;

		example_begin_range(&example, at * MS, "sonde.model", "layer",
			FIELDS(NUMBER("layer", i), TEXT("role", "layer")));
		part(&example, at + 1, at + 3, i, "norm1");
		example_begin_range(&example, (at + 3) * MS, "sonde.model", "self_attn",
			FIELDS(NUMBER("layer", i), TEXT("role", "self_attn")));
		part(&example, at + 3, at + 6, i, "q");
		part(&example, at + 6, at + 8, i, "k");
		part(&example, at + 14, at + 18, i, "o");
		example_end_range(&example, (at + 18) * MS, "sonde.model");
		part(&example, at + 20, at + 38, i, "mlp");
		example_end_range(&example, (at + 40) * MS, "sonde.model");
	}
	example_end_range(&example, 100 * MS, "sonde.model");
	example_begin_range(&example, 200 * MS, "sonde.model", "step",
		FIELDS(TEXT("role", "step"), NUMBER("instrumented", 0), NUMBER("tokens", 1)));
	example_end_range(&example, 280 * MS, "sonde.model");
	/* In q of layer 0, and in the rest of its attention. */
	example_samples(&example, PID, PID, 0, 18 * MS, 3);
	example_samples(&example, PID, PID, 0, 24 * MS, 2);
	return example_end(&example);
}

static const struct layer_row *find_layer(
	const struct layer_use *use, uint64_t layer, const char *role)
{
	array_foreach (&use->rows, row) {
		if (row->layer == layer && strcmp(row->role, role) == 0)
			return row;
	}
	fail_msg("there is no %s", role);
	return NULL;
}

static void test_layers_add_up(void **state _unused_)
{
	static const struct {
		const char *role;
		uint64_t ms;
	} parts[] = {{"norm1", 2}, {"q", 3}, {"k", 2}, {"o", 4}, {"attn_core", 6}, {"mlp", 18},
		{"other", 5}};
	_cleanup_model_ struct model *model = a_pass();
	_cleanup_layer_use_ struct layer_use use = {0};
	uint64_t own_ns = 0;

	assert_int_equal(layer_use_init(&use, model, NULL), 0);
	for (uint64_t layer = 0; layer < 2; layer++) {
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
			assert_int_equal(
				find_layer(&use, layer, parts[i].role)->own_ns, parts[i].ms * MS);
	}
	assert_int_equal(find_layer(&use, 0, "attn_core")->total_ns, 15 * MS);
	assert_int_equal(find_layer(&use, 0, "q")->own.samples, 3);
	assert_int_equal(find_layer(&use, 0, "attn_core")->own.samples, 2);
	assert_int_equal(find_layer(&use, 1, "q")->own.samples, 0);
	assert_int_equal(find_layer(&use, LAYER_NONE, "embed")->own_ns, 10 * MS);
	assert_int_equal(find_layer(&use, LAYER_NONE, "other")->own_ns, 10 * MS);
	array_foreach (&use.rows, row)
		own_ns += row->own_ns;
	assert_int_equal(use.steps, 1);
	assert_int_equal(use.step_ns, 100 * MS);
	assert_int_equal(own_ns, use.step_ns);
	assert_int_equal(use.layers_ns, 80 * MS);
	assert_int_equal(use.model_ns, 10 * MS);
	assert_int_equal(use.rest_ns, 10 * MS);
	/* What the hooks cost. */
	assert_int_equal(use.unwatched_steps, 1);
	assert_int_equal(use.watched.total_ns, 100 * MS);
	assert_int_equal(use.unwatched.total_ns, 80 * MS);
}

/* What threads of a pool do for a layer is the layer's; another thread with a model is not in it.
 */
static void test_threads_of_a_pool(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_layer_use_ struct layer_use use = {0};

	example_inference_begin(&example);
	example_thread(&example, PID, PID + 1, "worker");
	example_begin_range(&example, 10 * MS, "sonde.model", "layer 0",
		FIELDS(NUMBER("layer", 0), TEXT("role", "layer")));
	part(&example, 20, 30, 0, "q");
	example_end_range(&example, 50 * MS, "sonde.model");
	example_samples(&example, PID, PID, 0, 21 * MS, 4);
	example_samples(&example, PID, PID + 1, 0, 21 * MS, 5);
	example_samples(&example, PID, PID + 1, 0, 60 * MS, 5);
	model = example_end(&example);
	assert_int_equal(layer_use_init(&use, model, NULL), 0);
	assert_int_equal(find_layer(&use, 0, "q")->own.samples, 9);
	assert_int_equal(find_layer(&use, 0, "other")->own.samples, 0);
	assert_int_equal(use.step_ns, 40 * MS);
}

/* ---- costs ---- */

/* The profiler before this one divided mJ by 3.6e6: a thousand times too much. */
static void test_units_of_costs(void **state _unused_)
{
	struct energy_rates rates = ENERGY_RATES_NONE;
	struct errmsg err;

	assert_true(energy_kwh(3.6e6) == 1);
	assert_true(energy_kwh(1) == 1 / 3.6e6);
	assert_true(isnan(energy_cost(&rates, 1)) && isnan(energy_co2_g(&rates, 1)));
	assert_int_equal(energy_rates_parse_price(&rates, "0.25/kWh", &err), 0);
	assert_int_equal(energy_rates_parse_co2(&rates, "400g/kWh", &err), 0);
	assert_true(energy_cost(&rates, 7.2e6) == 0.5);
	assert_true(energy_co2_g(&rates, 7.2e6) == 800);
	assert_true(fabs(energy_co2_g(&rates, 1000) - 400.0 / 3600) < 1e-12);
	assert_true(isnan(energy_cost(&rates, NAN)));
	assert_true(energy_car_miles(800) == 2 && isnan(energy_car_miles(NAN)));
	assert_int_equal(energy_rates_parse_price(&rates, "250/MWh", &err), 0);
	assert_true(fabs(rates.price_per_kwh - 0.25) < 1e-12);
	assert_int_equal(energy_rates_parse_co2(&rates, "0.4kg/kWh", &err), 0);
	assert_true(fabs(rates.co2_g_per_kwh - 400) < 1e-9);
	assert_int_equal(energy_rates_parse_co2(&rates, "400kg/MWh", &err), 0);
	assert_true(fabs(rates.co2_g_per_kwh - 400) < 1e-9);
	for (size_t i = 0; i < 6; i++) {
		static const char *const wrong[] = {
			"", "0.25", "0.25/Wh", "-1/kWh", "nan/kWh", "0.25/kWh x"};

		assert_int_equal(energy_rates_parse_price(&rates, wrong[i], &err), -EINVAL);
		assert_int_equal(energy_rates_parse_co2(&rates, wrong[i], &err), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_definitions),
		cmocka_unit_test(test_no_first_token_is_invented),
		cmocka_unit_test(test_tokens_between_windows),
		cmocka_unit_test(test_zero_durations),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_batches_and_prompts),
		cmocka_unit_test(test_requests_of_an_engine),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_goodput),
		cmocka_unit_test(test_prefill_is_not_decode),
		cmocka_unit_test(test_phases_of_ranges),
		cmocka_unit_test(test_phases_at_once),
		cmocka_unit_test(test_layers_add_up),
		cmocka_unit_test(test_threads_of_a_pool),
		cmocka_unit_test(test_units_of_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
