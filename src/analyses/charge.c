/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/charge.h"

int64_t charge_position(const struct model *model, const struct model_stack *stack)
{
	int64_t python = -1, native = -1;

	for (uint32_t i = stack->whole_count; i-- > 0;) {
		uint32_t frame = model->stack_frames.items[stack->first + i];
		const struct model_function *function =
			&model->functions.items[model->frames.items[frame].function];

		if (function->class == MODEL_CLASS_USER)
			return i;
		if (python < 0 && function->kind == CAPTURE_FRAME_INTERPRETED)
			python = i;
		if (native < 0 && function->kind != CAPTURE_FRAME_KERNEL)
			native = i;
	}
	return python >= 0 ? python : native;
}

uint32_t charge_frame(const struct model *model, uint32_t index)
{
	const struct model_stack *stack;
	int64_t at;

	if (index == MODEL_NONE)
		return MODEL_NONE;
	stack = &model->stacks.items[index];
	at = charge_position(model, stack);
	return at < 0 ? MODEL_NONE : model->stack_frames.items[stack->first + (uint32_t)at];
}

struct charge_key charge_key(const struct model *model, uint32_t index, uint64_t reason)
{
	struct charge_key key = {.reason = reason, .function = MODEL_NONE};

	if (index != MODEL_NONE) {
		const struct model_frame *found = &model->frames.items[index];

		key.source_file = found->line ? found->source_file : NULL;
		key.line = found->line;
		key.function = found->function;
	}
	return key;
}
