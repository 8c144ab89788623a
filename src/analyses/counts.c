/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/counts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"

int stack_counts_init(
	struct stack_counts *counts, const struct model *model, const struct selected *selected)
{
	*counts = (struct stack_counts){
		.by_stack = calloc(model->stacks.count + 1, sizeof(*counts->by_stack)),
	};
	if (!counts->by_stack)
		return -ENOMEM;
	for (size_t i = 0; i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];

		if (!selected->samples[i])
			continue;
		counts->samples += sample->count;
		if (sample->stack == MODEL_NONE || !model->stacks.items[sample->stack].count)
			counts->no_stack += sample->count;
		else
			counts->by_stack[sample->stack] += sample->count;
	}
	return 0;
}

void stack_counts_done(struct stack_counts *counts)
{
	free(counts->by_stack);
	*counts = (struct stack_counts){0};
}

/* `last_seen[key]` is the last stack, plus one, that has the key: how recursion is counted once. */
static void count_stack(struct frame_counts *counts, const struct model *model, size_t index,
	uint64_t samples, const uint32_t *frame_keys, uint32_t *last_seen)
{
	const struct model_stack *stack = &model->stacks.items[index];
	const uint32_t *frames = model->stack_frames.items + stack->first;

	for (uint32_t i = 0; i < stack->count; i++) {
		uint32_t key = frame_keys[frames[i]];

		if (last_seen[key] == index + 1)
			continue;
		last_seen[key] = (uint32_t)index + 1;
		counts->total[key] += samples;
	}
	counts->self[frame_keys[frames[stack->count - 1]]] += samples;
}

int frame_counts_init(struct frame_counts *counts, const struct model *model,
	const struct stack_counts *stacks, const uint32_t *frame_keys, size_t key_count)
{
	_cleanup_free_ uint32_t *last_seen = calloc(key_count + 1, sizeof(*last_seen));

	*counts = (struct frame_counts){
		.self = calloc(key_count + 1, sizeof(*counts->self)),
		.total = calloc(key_count + 1, sizeof(*counts->total)),
		.key_count = key_count,
	};
	if (!last_seen || !counts->self || !counts->total) {
		frame_counts_done(counts);
		return -ENOMEM;
	}
	for (size_t i = 0; i < model->stacks.count; i++) {
		if (stacks->by_stack[i])
			count_stack(counts, model, i, stacks->by_stack[i], frame_keys, last_seen);
	}
	return 0;
}

void frame_counts_done(struct frame_counts *counts)
{
	free(counts->self);
	free(counts->total);
	*counts = (struct frame_counts){0};
}
