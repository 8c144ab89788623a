/* SPDX-License-Identifier: Apache-2.0 */
#include "model/weigh.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"

/* The frame of each reason; MODEL_NONE: not made yet. */
struct reasons {
	uint32_t frames[WIRE_WAIT_MAX];
	uint32_t module;
	struct map_u64 stacks; /* stack << 8 | reason → the stack that ends in the reason */
};

static int reason_frame(
	struct model *model, struct reasons *reasons, unsigned wait, uint32_t *ret_frame)
{
	struct model_function function = {
		.module = reasons->module,
		.source_file = "",
		.kind = CAPTURE_FRAME_KERNEL,
		.class = MODEL_CLASS_KERNEL,
	};
	struct model_frame frame = {
		.function = (uint32_t)model->functions.count, .source_file = ""};
	char name[32];
	uint32_t id;
	int r;

	*ret_frame = reasons->frames[wait];
	if (*ret_frame != MODEL_NONE)
		return 0;
	snprintf(name, sizeof(name), "[waiting: %s]", wire_wait_name(wait));
	r = intern_add(&model->strings, name, strlen(name), &id);
	if (r < 0)
		return r;
	function.name = intern_get(&model->strings, id);
	*ret_frame = reasons->frames[wait] = (uint32_t)model->frames.count;
	r = array_append(&model->functions, function);
	return r ?: array_append(&model->frames, frame);
}

/* The sample's stack with its reason as the innermost frame. */
static int extend_stack(struct model *model, struct reasons *reasons, struct model_sample *sample)
{
	uint64_t key = (uint64_t)sample->stack << 8 | sample->wait, known;
	struct model_stack stack = {.stop = WIRE_STOP_COMPLETE};
	uint32_t frame, first = (uint32_t)model->stack_frames.count;
	int r;

	if (map_u64_get(&reasons->stacks, key, &known)) {
		sample->stack = (uint32_t)known;
		return 0;
	}
	r = reason_frame(model, reasons, sample->wait, &frame);
	if (sample->stack != MODEL_NONE)
		stack = model->stacks.items[sample->stack];
	for (uint32_t i = 0; r == 0 && i < stack.whole_count; i++)
		r = array_append(&model->stack_frames, model->stack_frames.items[stack.first + i]);
	r = r ?: array_append(&model->stack_frames, frame);
	stack.first = first;
	stack.count = ++stack.whole_count;
	r = r ?: map_u64_set(&reasons->stacks, key, model->stacks.count);
	sample->stack = (uint32_t)model->stacks.count;
	return r ?: array_append(&model->stacks, stack);
}

int model_weigh(struct model *model, enum model_weight weight)
{
	struct reasons reasons = {0};
	int r = 0;

	if (weight == MODEL_WEIGHT_CPU)
		return 0;
	memset(reasons.frames, 0xff, sizeof(reasons.frames)); /* MODEL_NONE */
	reasons.module = (uint32_t)model->modules.count;
	r = array_append(
		&model->modules, (struct model_module){.path = "[waiting]", .name = "[waiting]"});
	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		struct model_sample *sample = &model->samples.items[i];
		uint64_t units =
			(model_sample_time_ns(model, sample) + MODEL_UNIT_NS / 2) / MODEL_UNIT_NS;

		sample->count = (uint32_t)MIN(units, (uint64_t)UINT32_MAX);
		if (sample->wait != WIRE_WAIT_NONE)
			r = extend_stack(model, &reasons, sample);
	}
	model->unit_ns = MODEL_UNIT_NS;
	map_u64_done(&reasons.stacks);
	return r;
}
