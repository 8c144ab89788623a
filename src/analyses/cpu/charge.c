/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/charge.h"

#include "model/shown.h"

#define CHARGE_NEVER 5

/* How well a cost is placed in a function that is not the user's: less is better. */
static unsigned rank_of(const struct model_function *function)
{
	static const unsigned char ranks[MODEL_CLASS_MAX] = {
		[MODEL_CLASS_NATIVE] = 2,
		[MODEL_CLASS_LIBRARY] = 2,
		[MODEL_CLASS_FRAMEWORK] = 3,
		[MODEL_CLASS_INTERPRETER] = 3,
		[MODEL_CLASS_RUNTIME] = 4,
		[MODEL_CLASS_SONDE] = CHARGE_NEVER,
		[MODEL_CLASS_KERNEL] = CHARGE_NEVER,
	};
	unsigned rank = ranks[function->class];

	return function->kind == CAPTURE_FRAME_INTERPRETED && rank != CHARGE_NEVER ? 1 : rank;
}

/* The position in the stack; -1: there is none. */
static int64_t charge_position(const struct model *model, const struct model_stack *stack)
{
	int64_t found = model_own_frame(model, stack);
	unsigned best = CHARGE_NEVER;

	if (found >= 0)
		return found;
	for (uint32_t i = stack->whole_count; i-- > 0;) {
		uint32_t frame = model->stack_frames.items[stack->first + i];
		const struct model_function *function =
			&model->functions.items[model->frames.items[frame].function];
		unsigned rank = rank_of(function);

		if (rank < best) {
			best = rank;
			found = i;
		}
		if (function->begins_process)
			break;
	}
	return found;
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
