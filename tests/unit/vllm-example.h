/* SPDX-License-Identifier: Apache-2.0 */
/* Marks and ranges as vLLM's hooks write them, put into the model of model-example.h. */
#pragma once

#include "model-example.h"

#define VLLM_PID 7
#define VLLM_MS  1000000ULL

#define NUMBER(field, number)                                                                      \
	{                                                                                          \
		.name = field, .type = WIRE_RANGE_U64, .value = (number), .text = ""               \
	}
#define TEXT(field, string)                                                                        \
	{                                                                                          \
		.name = field, .type = WIRE_RANGE_TEXT, .text = string                             \
	}

static inline void example_event(struct example *example, enum capture_range_kind kind,
	uint64_t time_ns, const char *name, const struct capture_range_field *fields,
	uint32_t count)
{
	const struct capture_range_event event = {
		.time_ns = time_ns,
		.track = 1,
		.pid = VLLM_PID,
		.tid = VLLM_PID,
		.kind = kind,
		.domain = "vllm",
		.name = name,
		.category = "",
		.fields = fields,
		.field_count = count,
	};

	assert_int_equal(model_builder_visitor.range(example->builder, &event), 0);
}

#define example_mark(example, time_ns, name, ...)                                                  \
	example_event(example, CAPTURE_RANGE_MARK, time_ns, name,                                  \
		(const struct capture_range_field[]){__VA_ARGS__},                                 \
		sizeof((const struct capture_range_field[]){__VA_ARGS__}) /                        \
			sizeof(struct capture_range_field))

/* Two requests, one of them pre-empted; two layers with four experts; a captured graph; a pass. */
static inline struct model *example_vllm(void)
{
	struct example example;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, VLLM_PID, "vllm", 1);
	example_thread(&example, VLLM_PID, VLLM_PID, "engine");
	example_mark(&example, 1 * VLLM_MS, "request.added", NUMBER("request", 1),
		TEXT("id", "a,b"), NUMBER("prompt_tokens", 10), NUMBER("waited_ns", VLLM_MS / 2));
	example_mark(&example, 3 * VLLM_MS, "request.scheduled", NUMBER("request", 1));
	example_mark(&example, 3 * VLLM_MS, "batch", TEXT("phase", "prefill"),
		NUMBER("requests", 1), NUMBER("max_requests", 4), NUMBER("tokens", 10),
		NUMBER("max_tokens", 20));
	example_mark(&example, 4 * VLLM_MS, "kv", NUMBER("used", 5), NUMBER("total", 9),
		NUMBER("allocated", 6), NUMBER("freed", 1));
	example_mark(&example, 4 * VLLM_MS, "kv.eviction", NUMBER("lifetime_ns", 2 * VLLM_MS));
	example_event(&example, CAPTURE_RANGE_BEGIN, 5 * VLLM_MS, "forward",
		(const struct capture_range_field[]){
			TEXT("phase", "prefill"), NUMBER("requests", 1), NUMBER("tokens", 10)},
		3);
	example_mark(&example, 5500000, "graph.replay", TEXT("mode", "FULL"), NUMBER("tokens", 16));
	example_event(&example, CAPTURE_RANGE_END, 6 * VLLM_MS, "", NULL, 0);
	example_mark(&example, 7 * VLLM_MS, "request.first_token", NUMBER("request", 1),
		NUMBER("output_tokens", 1));
	example_mark(&example, 8 * VLLM_MS, "request.preempted", NUMBER("request", 1),
		TEXT("reason", "kv-cache-full"));
	example_mark(&example, 12 * VLLM_MS, "request.resumed", NUMBER("request", 1));
	example_mark(&example, 14 * VLLM_MS, "request.preempted", NUMBER("request", 2));
	example_mark(&example, 17 * VLLM_MS, "request.finished", NUMBER("request", 1),
		TEXT("reason", "stop"), NUMBER("output_tokens", 6));
	example_mark(&example, 18 * VLLM_MS, "graph.capture", TEXT("mode", "FULL"),
		NUMBER("tokens", 16), NUMBER("first", 1), NUMBER("duration_ns", VLLM_MS));
	example_mark(&example, 20 * VLLM_MS, "moe.routed", NUMBER("layer", 9), TEXT("name", "nine"),
		NUMBER("experts", 4), NUMBER("top_k", 2), NUMBER("calls", 1), NUMBER("tokens", 4));
	example_mark(&example, 21 * VLLM_MS, "moe.experts", NUMBER("layer", 9), NUMBER("0", 4),
		NUMBER("2", 3), NUMBER("3", 1), NUMBER("4", 100), NUMBER("99999999999", 1));
	example_mark(&example, 22 * VLLM_MS, "moe.pairs", NUMBER("layer", 9), NUMBER("expert", 0),
		NUMBER("2", 3), NUMBER("3", 1), NUMBER("7", 1));
	example_mark(&example, 22 * VLLM_MS, "moe.pairs", NUMBER("layer", 9), NUMBER("expert", 4),
		NUMBER("2", 3));
	example_mark(&example, 23 * VLLM_MS, "moe.weights", NUMBER("layer", 9), NUMBER("9", 5),
		NUMBER("10", 5));
	example_mark(&example, 24 * VLLM_MS, "moe.routed", NUMBER("layer", 2),
		NUMBER("experts", 1ULL << 40), NUMBER("top_k", 2));
	example_mark(&example, 25 * VLLM_MS, "moe.captured", NUMBER("layer", 9));
	example_mark(&example, 26 * VLLM_MS, "moe.lost", NUMBER("layer", 9), NUMBER("calls", 6));
	example_mark(&example, 30 * VLLM_MS, "moe.routed", NUMBER("layer", 9), NUMBER("experts", 6),
		NUMBER("top_k", 2), NUMBER("calls", 1), NUMBER("tokens", 1));
	example_mark(&example, 31 * VLLM_MS, "moe.experts", NUMBER("layer", 9), NUMBER("5", 2));
	return example_end(&example);
}
