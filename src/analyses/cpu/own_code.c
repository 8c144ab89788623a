/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/own_code.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/counts.h"
#include "analyses/cpu/charge.h"
#include "base/map.h"
#include "model/shown.h"

/* A stack's part in a table: the rows of its frames, the one of self first, each once. */
struct stack_rows {
	uint32_t first, count; /* in table_state.places */
};

/* What a table needs while it is made. */
struct table_state {
	struct intern keys;
	ARRAY_OF(uint32_t) places;
	struct stack_rows *stacks;
	ARRAY_OF(size_t) last_stacks;      /* of each row: the last that it is in, and 1 */
	ARRAY_OF(struct energy_sums) sums; /* two for each row: of self, of total */
};

static void table_state_done(struct table_state *state)
{
	intern_done(&state->keys);
	array_done(&state->places);
	free(state->stacks);
	array_done(&state->last_stacks);
	array_done(&state->sums);
}

/* What is added to the rows of a stack: samples and energy, or a piece of it for their sums. */
struct stack_use {
	uint32_t stack;
	uint64_t samples;
	double energy_j;
	const struct energy_piece *piece; /* or NULL */
};

/* Returns 0 or -ENOMEM. */
static int add_frame(struct own_code *own, struct table_state *states, enum own_code_by by,
	const struct model *model, uint32_t frame, uint32_t stack)
{
	struct charge_key key = {.function = model->frames.items[frame].function};
	struct table_state *state = &states[by];
	uint32_t id;
	int r;

	if (by == OWN_CODE_LINE)
		key = charge_key(model, frame, 0);
	r = intern_add(&state->keys, &key, sizeof(key), &id);
	if (r > 0) {
		r = array_append(&own->rows[by], (struct own_code_row){.frame = frame});
		r = r ?: array_append(&state->last_stacks, 0);
		r = r ?: array_append(&state->sums, (struct energy_sums){0});
		r = r ?: array_append(&state->sums, (struct energy_sums){0});
	}
	if (r < 0 || state->last_stacks.items[id] == stack + 1ULL)
		return r;
	state->last_stacks.items[id] = stack + 1ULL;
	state->stacks[stack].count++;
	return array_append(&state->places, id);
}

/* From the innermost frame of the user's own outwards, as far as it is one process. */
static int find_rows(
	struct own_code *own, struct table_state *states, const struct model *model, uint32_t index)
{
	const struct model_stack *stack = &model->stacks.items[index];
	int r = 0;

	for (int by = 0; by < OWN_CODE_MAX; by++)
		states[by].stacks[index].first = (uint32_t)states[by].places.count;
	for (int64_t at = model_own_frame(model, stack); at >= 0; at--) {
		uint32_t frame = model->stack_frames.items[stack->first + (uint32_t)at];
		const struct model_function *function =
			&model->functions.items[model->frames.items[frame].function];

		if (function->begins_process)
			break;
		if (function->class != MODEL_CLASS_USER)
			continue;
		for (int by = 0; r == 0 && by < OWN_CODE_MAX; by++)
			r = add_frame(own, states, (enum own_code_by)by, model, frame, index);
	}
	return r;
}

static void add_use(struct own_code *own, struct table_state *state, enum own_code_by by,
	const struct model *model, const struct stack_use *use)
{
	const struct stack_rows *rows = &state->stacks[use->stack];

	for (uint32_t i = 0; i < rows->count; i++) {
		uint32_t id = state->places.items[rows->first + i];
		struct own_code_row *row = &own->rows[by].items[id];
		struct energy_sums *sums = &state->sums.items[2 * (size_t)id];

		row->total_samples += use->samples;
		row->total_energy_j += use->energy_j;
		if (use->piece)
			energy_sums_add(&sums[1], model, use->piece);
		if (i)
			continue;
		row->self_samples += use->samples;
		row->self_energy_j += use->energy_j;
		if (use->piece)
			energy_sums_add(&sums[0], model, use->piece);
	}
}

static void add_stack(struct own_code *own, struct table_state *states, const struct model *model,
	const struct stack_use *use)
{
	for (int by = 0; by < OWN_CODE_MAX; by++)
		add_use(own, &states[by], (enum own_code_by)by, model, use);
}

static int compare_rows(const void *left, const void *right)
{
	const struct own_code_row *a = left, *b = right;

	if (a->self_samples != b->self_samples)
		return a->self_samples > b->self_samples ? -1 : 1;
	if (a->total_samples != b->total_samples)
		return a->total_samples > b->total_samples ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

static int sum_energy(
	const struct model *model, const struct selected *selected, double **ret_by_stack)
{
	double *by_stack = calloc(model->stacks.count + 1, sizeof(*by_stack));

	if (!by_stack)
		return -ENOMEM;
	*ret_by_stack = by_stack;
	for (size_t i = 0; i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];

		if (selected->samples[i] && sample->stack != MODEL_NONE)
			by_stack[sample->stack] += sample->energy_j;
	}
	array_foreach (&model->device_works, work) {
		if (work->stack != MODEL_NONE)
			by_stack[work->stack] += work->energy_j;
	}
	return 0;
}

/* The sums of all rows, piece by piece: samples in their order, then work that is none. */
static void add_pieces(struct own_code *own, struct table_state *states, const struct model *model,
	const struct selected *selected)
{
	struct energy_periods periods = {0};

	for (size_t i = 0; i < model->samples.count; i++) {
		struct energy_piece piece = energy_piece_of(&periods, model, i);
		const struct stack_use use = {model->samples.items[i].stack, 0, 0, &piece};

		if (selected->samples[i] && use.stack != MODEL_NONE)
			add_stack(own, states, model, &use);
	}
	if (model->counts_energy)
		return;
	array_foreach (&model->device_works, work) {
		const struct energy_piece piece = {.energy_j = work->energy_j,
			.duration_ns = work->end_ns - work->start_ns,
			.error = work->energy_error};
		const struct stack_use use = {work->stack, 0, 0, &piece};

		if (use.stack != MODEL_NONE)
			add_stack(own, states, model, &use);
	}
}

static bool has_energy(const struct model *model, const double *by_stack)
{
	for (size_t i = 0; i < model->stacks.count; i++) {
		if (by_stack[i] != 0)
			return true;
	}
	return false;
}

/* Going through all pieces takes longer than all else: only where there are joules. */
static void find_uncertainties(struct own_code *own, struct table_state *states,
	const struct model *model, const struct selected *selected, const double *by_stack)
{
	if (has_energy(model, by_stack))
		add_pieces(own, states, model, selected);
	for (int by = 0; by < OWN_CODE_MAX; by++) {
		for (size_t i = 0; i < own->rows[by].count; i++) {
			struct own_code_row *row = &own->rows[by].items[i];
			const struct energy_sums *sums = &states[by].sums.items[2 * i];

			row->self_uncertainty = energy_uncertainty_of(model, &sums[0]);
			row->total_uncertainty = energy_uncertainty_of(model, &sums[1]);
		}
	}
}

/* What launched work and was never seen running has energy alone: it is no row. */
static void drop_unsampled(struct own_code *own)
{
	for (int by = 0; by < OWN_CODE_MAX; by++) {
		while (own->rows[by].count &&
			!own->rows[by].items[own->rows[by].count - 1].total_samples)
			own->rows[by].count--;
	}
}

/* Samples and joules of each stack, and then the uncertainty of the rows' sums. */
static int fill(struct own_code *own, struct table_state *states, const struct model *model,
	const struct selected *selected)
{
	_cleanup_stack_counts_ struct stack_counts stacks = {0};
	_cleanup_free_ double *energy = NULL;
	int r = stack_counts_init(&stacks, model, selected);

	r = r ?: sum_energy(model, selected, &energy);
	for (int by = 0; r == 0 && by < OWN_CODE_MAX; by++) {
		states[by].stacks = calloc(model->stacks.count + 1, sizeof(*states[by].stacks));
		r = states[by].stacks ? 0 : -ENOMEM;
	}
	own->others = stacks.no_stack;
	for (uint32_t i = 0; r == 0 && i < model->stacks.count; i++) {
		const struct stack_use use = {i, stacks.by_stack[i], energy[i], NULL};

		if (!use.samples && !(use.energy_j > 0))
			continue;
		r = find_rows(own, states, model, i);
		if (r < 0)
			return r;
		if (model_own_frame(model, &model->stacks.items[i]) < 0)
			own->others += use.samples;
		add_stack(own, states, model, &use);
	}
	if (r == 0)
		find_uncertainties(own, states, model, selected, energy);
	return r;
}

int own_code_init(struct own_code *own, const struct model *model, const struct selected *selected)
{
	struct table_state states[OWN_CODE_MAX] = {0};
	int r;

	*own = (struct own_code){.samples = selected->count};
	r = fill(own, states, model, selected);
	for (int by = 0; by < OWN_CODE_MAX; by++) {
		if (own->rows[by].count)
			qsort(own->rows[by].items, own->rows[by].count,
				sizeof(*own->rows[by].items), compare_rows);
		table_state_done(&states[by]);
	}
	drop_unsampled(own);
	if (r < 0)
		own_code_done(own);
	return r;
}

void own_code_done(struct own_code *own)
{
	for (int by = 0; by < OWN_CODE_MAX; by++)
		array_done(&own->rows[by]);
}
