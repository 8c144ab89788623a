/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/waiting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/charge.h"
#include "base/map.h"

#define IS_COUNT (1U << 8) /* beside the reason, in a key */

/* The running sample of a thread that is nearest to the sample at `index`; MODEL_NONE: none is
 * near. */
static uint32_t nearest_sample(const struct model *model, size_t index, uint32_t thread)
{
	const struct model_sample *samples = model->samples.items;
	uint64_t time_ns = samples[index].time_ns, best_ns = WAITING_NEAR_NS + 1;
	uint32_t best = MODEL_NONE;

	for (size_t i = index; i-- > 0 && time_ns - samples[i].time_ns < best_ns;) {
		if (samples[i].thread != thread || samples[i].wait != WIRE_WAIT_NONE)
			continue;
		best = (uint32_t)i;
		best_ns = time_ns - samples[i].time_ns;
	}
	for (size_t i = index + 1;
		i < model->samples.count && samples[i].time_ns - time_ns < best_ns; i++) {
		if (samples[i].thread == thread && samples[i].wait == WIRE_WAIT_NONE)
			return (uint32_t)i;
	}
	return best;
}

static int add_holder(struct waiting *waiting, struct intern *known, const struct model *model,
	size_t index, uint32_t waiter)
{
	const struct model_sample *sample = &model->samples.items[index];
	struct waiting_holder row = {.waiter = waiter, .holder = MODEL_NONE};
	struct charge_key keys[2];
	uint32_t nearest, id;
	int r;

	row.has_holder = sample->gil_holder != MODEL_NONE;
	if (row.has_holder) {
		nearest = nearest_sample(model, index, sample->gil_holder);
		if (nearest != MODEL_NONE)
			row.holder = charge_frame(model, model->samples.items[nearest].stack);
	}
	keys[0] = charge_key(model, waiter, 0);
	keys[1] = charge_key(model, row.holder, row.has_holder);
	r = intern_add(known, keys, sizeof(keys), &id);
	if (r > 0)
		r = array_append(&waiting->holders, row);
	if (r < 0)
		return r;
	waiting->holders.items[id].time_ns += sample->duration_ns;
	return 0;
}

static void add_time(
	struct waiting *waiting, struct waiting_row *row, const struct model_sample *sample)
{
	row->time_ns += sample->duration_ns;
	waiting->by_reason[sample->wait] += sample->duration_ns;
	waiting->time_ns += sample->duration_ns;
	if (!waiting->exact)
		return;
	row->waits += MAX(sample->wait_count, 1U);
	row->open_waits += sample->wait_is_open;
	waiting->waits += MAX(sample->wait_count, 1U);
	waiting->open_waits += sample->wait_is_open;
	waiting->counted += sample->wait_count;
	waiting->counted_ns += sample->wait_count ? sample->duration_ns : 0;
}

static const char *call_of(const struct model_function *function)
{
	static const char prefix[] = "__x64_sys_";

	if (function->kind != CAPTURE_FRAME_KERNEL ||
		strncmp(function->name, prefix, strlen(prefix)) != 0)
		return NULL;
	return function->name + strlen(prefix);
}

/* The function of the system call that the stack is in; MODEL_NONE: it has none with a name. */
static uint32_t call_in(const struct model *model, uint32_t index)
{
	const struct model_stack *stack;

	if (index == MODEL_NONE)
		return MODEL_NONE;
	stack = &model->stacks.items[index];
	for (uint32_t i = 0; i < stack->whole_count; i++) {
		uint32_t frame = model->stack_frames.items[stack->first + i];
		uint32_t function = model->frames.items[frame].function;

		if (call_of(&model->functions.items[function]))
			return function;
	}
	return MODEL_NONE;
}

const char *waiting_call_name(const struct model *model, const struct waiting_row *row)
{
	return row->call == MODEL_NONE ? NULL : call_of(&model->functions.items[row->call]);
}

static int add_sample(struct waiting *waiting, struct intern *known, const struct model *model,
	const struct model_sample *sample, uint32_t *ret_row)
{
	struct waiting_row row = {
		.reason = sample->wait,
		.frame = charge_frame(model, sample->stack),
		.call = MODEL_NONE,
	};
	struct charge_key key;
	uint32_t id;
	int r;

	row.is_count = sample->wait_count > 0;
	if (sample->wait == WIRE_WAIT_OTHER || sample->wait == WIRE_WAIT_UNKNOWN)
		row.call = call_in(model, sample->stack);
	key = charge_key(model, row.frame,
		(uint64_t)row.call << 32 | sample->wait | (row.is_count ? IS_COUNT : 0));
	r = intern_add(known, &key, sizeof(key), &id);
	if (r > 0)
		r = array_append(&waiting->rows, row);
	if (r < 0)
		return r;
	add_time(waiting, &waiting->rows.items[id], sample);
	*ret_row = id;
	return 0;
}

static const struct model_function *function_of(const struct model *model, uint32_t frame)
{
	return frame == MODEL_NONE ? NULL
				   : &model->functions.items[model->frames.items[frame].function];
}

static bool is_own(const struct model *model, uint32_t frame)
{
	const struct model_function *function = function_of(model, frame);

	return function && function->class == MODEL_CLASS_USER;
}

static bool is_runtime(const struct model *model, uint32_t frame)
{
	const struct model_function *function = function_of(model, frame);

	return function && function->kind != CAPTURE_FRAME_INTERPRETED &&
	       (function->class == MODEL_CLASS_RUNTIME || function->class == MODEL_CLASS_FRAMEWORK);
}

static void mark_background(struct waiting *waiting, const struct model *model)
{
	bool has_own = false;

	array_foreach (&waiting->rows, row)
		has_own |= is_own(model, row->frame);
	array_foreach (&waiting->rows, row) {
		row->is_background = !row->is_count && (has_own ? !is_own(model, row->frame)
								: is_runtime(model, row->frame));
		if (row->is_background)
			waiting->background_ns += row->time_ns;
	}
}

/* `rows`: of each sample, MODEL_NONE where it is not selected. */
static int count_background_threads(
	struct waiting *waiting, const struct model *model, const uint32_t *rows)
{
	_cleanup_free_ unsigned char *seen = calloc(model->threads.count + 1, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	for (size_t i = 0; i < model->samples.count; i++) {
		const struct waiting_row *row;

		if (rows[i] == MODEL_NONE)
			continue;
		row = &waiting->rows.items[rows[i]];
		if (!row->is_count)
			seen[model->samples.items[i].thread] |= row->is_background ? 1 : 2;
	}
	for (size_t i = 0; i < model->threads.count; i++)
		waiting->background_threads += seen[i] == 1;
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

static int compare_holders(const void *left, const void *right)
{
	const struct waiting_holder *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->waiter != b->waiter)
		return a->waiter < b->waiter ? -1 : 1;
	return a->holder < b->holder ? -1 : a->holder > b->holder;
}

static void sort_rows(struct waiting *waiting)
{
	if (waiting->rows.count)
		qsort(waiting->rows.items, waiting->rows.count, sizeof(*waiting->rows.items),
			compare_rows);
	if (waiting->holders.count)
		qsort(waiting->holders.items, waiting->holders.count,
			sizeof(*waiting->holders.items), compare_holders);
}

static int add_samples(struct waiting *waiting, const struct model *model, const bool *selected)
{
	_cleanup_free_ uint32_t *rows = calloc(model->samples.count + 1, sizeof(*rows));
	struct intern known = {0}, known_holders = {0};
	int r = rows ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];

		rows[i] = MODEL_NONE;
		if (!selected[i])
			continue;
		r = add_sample(waiting, &known, model, sample, &rows[i]);
		if (r == 0 && sample->wait == WIRE_WAIT_GIL)
			r = add_holder(waiting, &known_holders, model, i,
				waiting->rows.items[rows[i]].frame);
	}
	intern_done(&known);
	intern_done(&known_holders);
	if (r < 0)
		return r;
	mark_background(waiting, model);
	return count_background_threads(waiting, model, rows);
}

int waiting_init(struct waiting *waiting, const struct model *model,
	const struct selection *selection, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	struct selection waits = *selection;
	int r;

	*waiting = (struct waiting){.exact = strcmp(model->session.wait_mode, "exact") == 0};
	waits.weight = MODEL_WEIGHT_WAIT;
	r = selection_apply(&waits, model, &selected, err);
	r = r ?: add_samples(waiting, model, selected.samples);
	if (r < 0) {
		waiting_done(waiting);
		return r;
	}
	sort_rows(waiting);
	return 0;
}

void waiting_done(struct waiting *waiting)
{
	array_done(&waiting->rows);
	array_done(&waiting->holders);
}
