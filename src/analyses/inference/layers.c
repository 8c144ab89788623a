/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/inference/layers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/range_fields.h"
#include "base/map.h"

#define DOMAIN "sonde.model"

struct row_key {
	uint64_t process, layer;
	const char *role; /* interned: equal roles are equal pointers */
};

/* A range that is open while ranges are walked in the order of their begins. */
struct open_range {
	uint64_t end_ns, own_from_ns;
	uint64_t cpu_ns;
	uint32_t row;
};

/* A row while its ranges are counted. */
struct state {
	bool has_inner, is_root;
	const char *role; /* as marked */
};

struct work {
	const struct model *model;
	struct layer_use *use;
	struct intern keys;
	ARRAY_OF(uint32_t) ranges; /* of the domain */
	ARRAY_OF(struct open_range) open;
	ARRAY_OF(struct state) states; /* by row */
};

static int compare_ranges(const void *left, const void *right, void *context)
{
	const struct model *model = context;
	uint32_t of_a = *(const uint32_t *)left, of_b = *(const uint32_t *)right;
	const struct model_range *a = &model->ranges.items[of_a], *b = &model->ranges.items[of_b];

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return of_a < of_b ? -1 : of_a > of_b;
}

static int gather(struct work *work)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < work->model->ranges.count; i++) {
		const struct model_range *range = &work->model->ranges.items[i];

		if (!range->is_mark && !range->is_open && range->thread != MODEL_NONE &&
			strcmp(range->domain, DOMAIN) == 0)
			r = array_append(&work->ranges, (uint32_t)i);
	}
	if (r == 0 && work->ranges.count)
		qsort_r(work->ranges.items, work->ranges.count, sizeof(*work->ranges.items),
			compare_ranges, (void *)work->model);
	return r;
}

/* The layer that a range names, or that of the one around it. */
static uint64_t layer_of(const struct work *work, const struct model_range *range)
{
	uint64_t layer;

	if (range_u64(work->model, range, "layer", &layer))
		return layer;
	if (!work->open.count)
		return LAYER_NONE;
	return work->use->rows.items[work->open.items[work->open.count - 1].row].layer;
}

static int find_row(struct work *work, const struct model_range *range, uint32_t *ret_row)
{
	const char *role = range_text(work->model, range, "role");
	struct row_key key = {
		.process = range->process,
		.layer = layer_of(work, range),
		.role = *role ? role : range->name,
	};
	int r = intern_add(&work->keys, &key, sizeof(key), ret_row);

	if (r <= 0)
		return r;
	r = array_append(&work->states, (struct state){.role = key.role});
	if (r == 0)
		r = array_append(&work->use->rows, (struct layer_row){
							   .layer = key.layer,
							   .role = key.role,
							   .process = range->process,
						   });
	return r;
}

/* The innermost range had the time up to now for itself. */
static int own_until(struct work *work, const struct model_range *range, uint64_t time_ns)
{
	struct open_range *inner = &work->open.items[work->open.count - 1];
	uint64_t from_ns = inner->own_from_ns;

	inner->own_from_ns = time_ns;
	if (time_ns <= from_ns)
		return 0;
	work->use->rows.items[inner->row].own_ns += time_ns - from_ns;
	return span_set_add(
		&work->use->spans, from_ns, time_ns, range->process, range->thread, inner->row);
}

/* Ends what ended before `time_ns`. */
static int close_until(struct work *work, const struct model_range *range, uint64_t time_ns)
{
	int r = 0;

	while (r == 0 && work->open.count) {
		struct open_range inner = work->open.items[work->open.count - 1];

		if (inner.end_ns > time_ns)
			return own_until(work, range, time_ns);
		r = own_until(work, range, inner.end_ns);
		work->open.count--;
		if (work->open.count)
			work->open.items[work->open.count - 1].own_from_ns = inner.end_ns;
	}
	return r;
}

static void add_cpu(struct work *work, const struct model_range *range, uint32_t row)
{
	struct layer_use *use = work->use;
	uint64_t cpu_ns;

	if (!range_u64(work->model, range, "cpu_ns", &cpu_ns))
		return;
	use->has_cpu = true;
	use->rows.items[row].own_cpu_ns += cpu_ns;
	if (!work->open.count)
		use->cpu_ns += cpu_ns;
	else
		use->rows.items[work->open.items[work->open.count - 1].row].own_cpu_ns -= cpu_ns;
}

/* A forward pass without ranges inside is of no use here, but to compare its time. */
static bool is_unwatched(struct work *work, const struct model_range *range)
{
	const struct model_range_field *field = range_field(work->model, range, "instrumented");
	bool is_unwatched = field && range_u64_or_0(work->model, range, "instrumented") == 0;
	struct layer_passes *passes = is_unwatched ? &work->use->unwatched : &work->use->watched;

	if (work->open.count || strcmp(range_text(work->model, range, "role"), "step") != 0)
		return false;
	if (range_u64_or_0(work->model, range, "tokens") == 1) {
		passes->count++;
		passes->total_ns += range->end_ns - range->start_ns;
	}
	work->use->unwatched_steps += is_unwatched;
	return is_unwatched;
}

static int open_range(struct work *work, const struct model_range *range)
{
	struct layer_use *use = work->use;
	struct open_range open = {.end_ns = range->end_ns, .own_from_ns = range->start_ns};
	int r = find_row(work, range, &open.row);

	if (r < 0)
		return r;
	if (work->open.count) {
		const struct open_range *outer = &work->open.items[work->open.count - 1];

		open.end_ns = MIN(open.end_ns, outer->end_ns);
		work->states.items[outer->row].has_inner = true;
	} else {
		work->states.items[open.row].is_root = true;
		use->steps++;
		use->step_ns += range->end_ns - range->start_ns;
	}
	add_cpu(work, range, open.row);
	use->rows.items[open.row].calls++;
	use->rows.items[open.row].total_ns += open.end_ns - range->start_ns;
	return array_append(&work->open, open);
}

static int walk(struct work *work)
{
	const struct model_range *last = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < work->ranges.count; i++) {
		const struct model_range *range = &work->model->ranges.items[work->ranges.items[i]];

		if (last)
			r = close_until(work, last,
				last->thread == range->thread ? range->start_ns : UINT64_MAX);
		if (r == 0 && is_unwatched(work, range))
			continue;
		r = r ?: open_range(work, range);
		last = range;
	}
	return last && r == 0 ? close_until(work, last, UINT64_MAX) : r;
}

/* What is left of a range that has others inside. */
static const char *rest_name(const struct state *state)
{
	if (strcmp(state->role, "self_attn") == 0)
		return "attn_core";
	return strcmp(state->role, "mlp") == 0 ? "mlp_core" : "other";
}

static void sum_up(struct work *work, const struct span_cost *costs)
{
	struct layer_use *use = work->use;

	for (size_t i = 0; i < work->states.count; i++) {
		struct layer_row *row = &use->rows.items[i];
		const struct state *state = &work->states.items[i];

		row->own = costs[i];
		if ((int64_t)row->own_cpu_ns < 0) /* clocks of inner ranges are read more often */
			row->own_cpu_ns = 0;
		use->all.samples += costs[i].samples;
		use->all.works += costs[i].works;
		use->all.device_busy_ns += costs[i].device_busy_ns;
		if (state->has_inner) {
			row->role = rest_name(state);
			row->is_rest = true;
		}
		if (row->layer != LAYER_NONE)
			use->layers_ns += row->own_ns;
		else if (state->is_root && state->has_inner)
			use->rest_ns += row->own_ns;
		else
			use->model_ns += row->own_ns;
	}
}

static int fill(struct work *work, const struct selected *selected)
{
	_cleanup_free_ struct span_cost *costs = NULL;
	int r = gather(work);

	r = r ?: walk(work);
	if (r < 0)
		return r;
	costs = calloc(work->use->rows.count + 1, sizeof(*costs));
	if (!costs)
		return -ENOMEM;
	r = span_costs(&work->use->spans, work->model, selected, costs);
	if (r == 0)
		sum_up(work, costs);
	return r;
}

int layer_use_init(
	struct layer_use *use, const struct model *model, const struct selected *selected)
{
	struct work work = {.model = model, .use = use};
	int r;

	*use = (struct layer_use){0};
	r = fill(&work, selected);
	intern_done(&work.keys);
	array_done(&work.ranges);
	array_done(&work.open);
	array_done(&work.states);
	if (r < 0)
		layer_use_done(use);
	return r;
}

void layer_use_done(struct layer_use *use)
{
	array_done(&use->rows);
	span_set_done(&use->spans);
}
