/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/waiting.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"

/* Hashed as bytes; source files are interned, equal names are equal pointers. */
struct row_key {
	const char *source_file;
	uint32_t line, function;
	uint64_t reason;
};

static const struct model_function *function_of(const struct model *model, uint32_t frame)
{
	return &model->functions.items[model->frames.items[frame].function];
}

/* The position in the stack of the frame that a wait is charged to; -1: there is none. */
static int64_t charged_frame(const struct model *model, const struct model_stack *stack)
{
	int64_t python = -1, native = -1;

	for (uint32_t i = stack->whole_count; i-- > 0;) {
		const struct model_function *function =
			function_of(model, model->stack_frames.items[stack->first + i]);

		if (function->class == MODEL_CLASS_USER)
			return i;
		if (python < 0 && function->kind == CAPTURE_FRAME_INTERPRETED)
			python = i;
		if (native < 0 && function->kind != CAPTURE_FRAME_KERNEL)
			native = i;
	}
	return python >= 0 ? python : native;
}

static int add_sample(struct waiting *waiting, struct intern *known, const struct model *model,
	const struct model_sample *sample)
{
	struct waiting_row row = {.reason = sample->wait, .frame = MODEL_NONE};
	struct row_key key = {.reason = sample->wait, .function = MODEL_NONE};
	uint32_t id;
	int r;

	if (sample->stack != MODEL_NONE) {
		const struct model_stack *stack = &model->stacks.items[sample->stack];
		int64_t at = charged_frame(model, stack);

		if (at >= 0)
			row.frame = model->stack_frames.items[stack->first + (uint32_t)at];
	}
	if (row.frame != MODEL_NONE) {
		const struct model_frame *frame = &model->frames.items[row.frame];

		key.source_file = frame->line ? frame->source_file : NULL;
		key.line = frame->line;
		key.function = frame->function;
	}
	r = intern_add(known, &key, sizeof(key), &id);
	if (r > 0)
		r = array_append(&waiting->rows, row);
	if (r < 0)
		return r;
	waiting->rows.items[id].time_ns += sample->duration_ns;
	waiting->by_reason[sample->wait] += sample->duration_ns;
	waiting->time_ns += sample->duration_ns;
	return 0;
}

static int compare_rows(const void *left, const void *right)
{
	const struct waiting_row *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->reason != b->reason)
		return a->reason < b->reason ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

int waiting_init(struct waiting *waiting, const struct model *model,
	const struct selection *selection, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	struct selection waits = *selection;
	struct intern known = {0};
	int r;

	*waiting = (struct waiting){0};
	waits.weight = MODEL_WEIGHT_WAIT;
	r = selection_apply(&waits, model, &selected, err);
	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		if (selected.samples[i])
			r = add_sample(waiting, &known, model, &model->samples.items[i]);
	}
	intern_done(&known);
	if (r < 0)
		waiting_done(waiting);
	else if (waiting->rows.count)
		qsort(waiting->rows.items, waiting->rows.count, sizeof(*waiting->rows.items),
			compare_rows);
	return r;
}

void waiting_done(struct waiting *waiting)
{
	array_done(&waiting->rows);
}
