/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small models for tests, built through the visitor as a capture's reader would. Frames and stacks
 * get ids in the order of the calls, from 1. Every call asserts success.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/builder/builder.h"

#define EXAMPLE_PERIOD_NS 1000000

struct example {
	struct model_builder *builder;
	capture_id mappings, frames, stacks;
};

static inline void example_begin(struct example *example, uint64_t period_ns)
{
	static const char *const command[] = {"work", "--fast"};
	struct capture_session session = {
		.sonde_version = "1",
		.host = "host",
		.kernel_release = "6.8",
		.architecture = "x86_64",
		.command = command,
		.command_count = 2,
		.unwind_mode = "bpf",
		.start_time_ns = 1000,
		.start_realtime_ns = 5000,
		.period_ns = period_ns,
		.cpu_count = 4,
	};

	*example = (struct example){0};
	assert_int_equal(model_builder_new(&example->builder), 0);
	assert_int_equal(model_builder_visitor.session(example->builder, &session), 0);
}

static inline capture_id example_mapping(struct example *example, const char *path)
{
	static const uint8_t build_id[] = {0xab, 0x01, 0xff};
	struct capture_mapping mapping = {
		.path = path, .build_id = build_id, .build_id_length = sizeof(build_id)};

	assert_int_equal(
		model_builder_visitor.mapping(example->builder, ++example->mappings, &mapping), 0);
	return example->mappings;
}

static inline capture_id example_frame(
	struct example *example, const char *function, capture_id mapping, uint64_t rel_pc)
{
	struct capture_frame frame = {
		.function = function,
		.mapping = mapping,
		.rel_pc = rel_pc,
		.kind = CAPTURE_FRAME_NATIVE,
	};

	assert_int_equal(
		model_builder_visitor.frame(example->builder, ++example->frames, &frame), 0);
	return example->frames;
}

/* Frames outermost first. */
static inline capture_id example_stack(
	struct example *example, enum wire_stop stop, size_t count, const capture_id *frames)
{
	assert_int_equal(model_builder_visitor.callstack(example->builder, ++example->stacks,
				 frames, count, stop, WIRE_PYTHON_NONE),
		0);
	return example->stacks;
}

#define example_frames(example, stop, ...)                                                         \
	example_stack(example, stop, sizeof((capture_id[]){__VA_ARGS__}) / sizeof(capture_id),     \
		(const capture_id[]){__VA_ARGS__})

static inline void example_process(
	struct example *example, uint32_t pid, const char *name, uint64_t start_time_ns)
{
	struct capture_process process = {
		.pid = pid, .name = name, .start_time_ns = start_time_ns, .cgroup = "/group"};

	assert_int_equal(model_builder_visitor.process(example->builder, &process), 0);
}

static inline void example_thread(
	struct example *example, uint32_t pid, uint32_t tid, const char *name)
{
	struct capture_thread thread = {.pid = pid, .tid = tid, .name = name};

	assert_int_equal(model_builder_visitor.thread(example->builder, &thread), 0);
}

static inline void example_samples(struct example *example, uint32_t pid, uint32_t tid,
	capture_id stack, uint64_t first_time_ns, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		struct capture_sample sample = {
			.time_ns = first_time_ns + i * EXAMPLE_PERIOD_NS,
			.pid = pid,
			.tid = tid,
			.cpu = (uint32_t)i % 2,
			.mode = CAPTURE_MODE_USER,
			.callstack = stack,
		};

		assert_int_equal(model_builder_visitor.sample(example->builder, &sample), 0);
	}
}

static inline struct model *example_end(struct example *example)
{
	struct model *model = NULL;

	assert_int_equal(model_builder_finish(example->builder, NULL, &model), 0);
	example->builder = model_builder_free(example->builder);
	return model;
}

/* The index of the function of that name, MODEL_NONE without one. */
static inline uint32_t example_function(const struct model *model, const char *name)
{
	for (uint32_t i = 0; i < model->functions.count; i++) {
		if (strcmp(model->functions.items[i].name, name) == 0)
			return i;
	}
	return MODEL_NONE;
}
