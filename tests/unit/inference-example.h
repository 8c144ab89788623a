/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of tokens and ranges of models with known times, put into the model of model-example.h. */
#pragma once

#include "analyses/inference/inference.h"
#include "vllm-example.h"

#define PID 7
#define MS  VLLM_MS

#define FIELDS(...)                                                                                \
	(const struct capture_range_field[]){__VA_ARGS__},                                         \
		sizeof((const struct capture_range_field[]){__VA_ARGS__}) /                        \
			sizeof(struct capture_range_field)

static inline void example_ranged(struct example *example, enum capture_range_kind kind,
	uint64_t time_ns, const char *domain, const char *name,
	const struct capture_range_field *fields, uint32_t count)
{
	const struct capture_range_event event = {
		.time_ns = time_ns,
		.track = 1,
		.pid = PID,
		.tid = PID,
		.kind = kind,
		.domain = domain,
		.name = name,
		.category = "",
		.fields = fields,
		.field_count = count,
	};

	assert_int_equal(model_builder_visitor.range(example->builder, &event), 0);
}

static inline void example_inference_begin(struct example *example)
{
	example_begin(example, EXAMPLE_PERIOD_NS);
	example_process(example, PID, "serve", 1);
	example_thread(example, PID, PID, "serve");
}

/* A mark of sonde.token(). */
static inline void example_token(struct example *example, uint64_t time_ns, const char *request,
	uint64_t index, const char *phase)
{
	example_ranged(example, CAPTURE_RANGE_MARK, time_ns, "sonde.token", "token",
		FIELDS(NUMBER("index", index), TEXT("request", request), TEXT("phase", phase)));
}

static inline void example_begin_range(struct example *example, uint64_t time_ns,
	const char *domain, const char *name, const struct capture_range_field *fields,
	size_t count)
{
	example_ranged(
		example, CAPTURE_RANGE_BEGIN, time_ns, domain, name, fields, (uint32_t)count);
}

static inline void example_end_range(struct example *example, uint64_t time_ns, const char *domain)
{
	example_ranged(example, CAPTURE_RANGE_END, time_ns, domain, "", NULL, 0);
}

/* What the marks and ranges say. The model is the caller's, and so is what the inference holds. */
static inline struct model *example_infer(struct example *example, struct inference *ret_inference)
{
	struct model *model = example_end(example);

	assert_int_equal(inference_init(ret_inference, model), 0);
	return model;
}
