/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/breakdown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/counts.h"
#include "analyses/dimensions.h"
#include "base/map.h"

const char *breakdown_by_to_string(enum breakdown_by by)
{
	return by >= 0 && by < BREAKDOWN_MAX ? dimensions[by].name : NULL;
}

enum breakdown_by breakdown_by_from_string(const char *name)
{
	for (int by = 0; by < BREAKDOWN_MAX; by++) {
		if (strcmp(dimensions[by].name, name) == 0)
			return (enum breakdown_by)by;
	}
	return BREAKDOWN_INVALID;
}

/* `index` is the key, or for MODEL_NONE the number of keys. */
static int add_row(
	struct breakdown *breakdown, uint32_t key, size_t index, uint64_t self, uint64_t total)
{
	if (!total)
		return 0;
	return array_append(&breakdown->rows, (struct breakdown_row){
						      .key = key,
						      .self_samples = self,
						      .total_samples = total,
						      .sums = (uint32_t)index,
					      });
}

static int count_frames(struct breakdown *breakdown, const struct model *model,
	const struct selected *selected, const uint32_t *keys, size_t key_count)
{
	_cleanup_stack_counts_ struct stack_counts stacks = {0};
	_cleanup_frame_counts_ struct frame_counts counts = {0};
	int r = stack_counts_init(&stacks, model, selected);

	r = r ?: frame_counts_init(&counts, model, &stacks, keys, key_count);
	for (size_t i = 0; r == 0 && i < key_count; i++)
		r = add_row(breakdown, (uint32_t)i, i, counts.self[i], counts.total[i]);
	r = r ?: add_row(breakdown, MODEL_NONE, key_count, stacks.no_stack, stacks.no_stack);
	if (r == 0 && model->counts_energy)
		r = energy_sums_of_frames(&breakdown->sums, model, selected, keys, key_count);
	return r;
}

static int count_samples(struct breakdown *breakdown, const struct model *model,
	const struct selected *selected, const uint32_t *keys, size_t key_count)
{
	_cleanup_free_ uint64_t *counts = calloc(key_count + 1, sizeof(*counts));
	uint64_t without = 0;
	int r = counts ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		if (!selected->samples[i])
			continue;
		if (keys[i] == MODEL_NONE)
			without += model->samples.items[i].count;
		else
			counts[keys[i]] += model->samples.items[i].count;
	}
	for (size_t i = 0; r == 0 && i < key_count; i++)
		r = add_row(breakdown, (uint32_t)i, i, counts[i], counts[i]);
	r = r ?: add_row(breakdown, MODEL_NONE, key_count, without, without);
	if (r == 0 && model->counts_energy)
		r = energy_sums_of_samples(&breakdown->sums, model, selected, keys, key_count);
	return r;
}

struct order {
	const struct breakdown *breakdown;
	const struct model *model;
	enum breakdown_sort sort;
};

static int compare_names(const struct order *order, uint32_t left, uint32_t right)
{
	const struct dimension *dimension = &dimensions[order->breakdown->by];

	if (!dimension->name_of || left == MODEL_NONE || right == MODEL_NONE)
		return 0;
	return strcmp(dimension->name_of(order->breakdown, order->model, left),
		dimension->name_of(order->breakdown, order->model, right));
}

static int compare_counts(uint64_t left, uint64_t right)
{
	return left > right ? -1 : left < right;
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct breakdown_row *a = left, *b = right;
	const struct order *order = context;
	int by_self = compare_counts(a->self_samples, b->self_samples);
	int by_total = compare_counts(a->total_samples, b->total_samples);
	int r = order->sort == BREAKDOWN_SORT_SELF ? by_self ?: by_total : by_total ?: by_self;

	r = r ?: compare_names(order, a->key, b->key);
	return r ?: (a->key < b->key ? -1 : a->key > b->key);
}

int breakdown_init(struct breakdown *breakdown, const struct model *model,
	const struct selected *selected, enum breakdown_by by, enum breakdown_sort sort)
{
	_cleanup_free_ uint32_t *keys = NULL;
	struct order order = {breakdown, model, sort};
	size_t key_count = 0;
	int r;

	*breakdown = (struct breakdown){.by = by, .samples = selected->count};
	r = dimensions[by].keys(breakdown, model, &keys, &key_count);
	if (r == 0 && dimensions[by].by_frame)
		r = count_frames(breakdown, model, selected, keys, key_count);
	else if (r == 0)
		r = count_samples(breakdown, model, selected, keys, key_count);
	if (r < 0) {
		breakdown_done(breakdown);
		return r;
	}
	if (breakdown->rows.count)
		qsort_r(breakdown->rows.items, breakdown->rows.count,
			sizeof(*breakdown->rows.items), compare_rows, &order);
	/* Code outside of every module sorted by its own key, but is nobody's index. */
	array_foreach (&breakdown->rows, row) {
		if (by == BREAKDOWN_MODULE && row->key == model->modules.count)
			row->key = BREAKDOWN_NO_MODULE;
	}
	return 0;
}

struct energy_uncertainty breakdown_uncertainty(const struct breakdown *breakdown,
	const struct model *model, const struct breakdown_row *row, bool is_total)
{
	const struct energy_sums *sums =
		is_total && breakdown->sums.total ? breakdown->sums.total : breakdown->sums.self;

	return sums ? energy_uncertainty_of(model, &sums[row->sums]) : ENERGY_NO_UNCERTAINTY;
}

/* Nanoseconds between the first and the last that is known of each process. */
static uint64_t *lifetimes(const struct model *model)
{
	uint64_t *first = calloc(2 * model->processes.count + 1, sizeof(*first));
	uint64_t *last = first ? first + model->processes.count : NULL;

	if (!first)
		return NULL;
	for (size_t i = 0; i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];
		uint32_t process = model->threads.items[sample->thread].process;
		uint64_t begin_ns = sample->time_ns;

		if (sample->wait != WIRE_WAIT_NONE)
			begin_ns -= MIN(begin_ns, sample->duration_ns);
		if (!first[process] || begin_ns < first[process])
			first[process] = begin_ns;
		last[process] = MAX(last[process], sample->time_ns);
	}
	for (size_t i = 0; i < model->processes.count; i++)
		first[i] = last[i] - first[i];
	return first;
}

/* Short processes of one rank by name: names are interned, equal ones are equal pointers. */
struct short_key {
	const char *name;
	uint64_t rank;
};

struct short_processes {
	struct intern names;
	ARRAY_OF(uint32_t) counts; /* by id of the name */
	ARRAY_OF(uint32_t) rows;   /* by id: the row that stands for all, and one; 0: not yet */
	uint32_t *ids;             /* of each row's name; MODEL_NONE: it is not short */
};

static int count_short(
	struct short_processes *all, const struct breakdown *breakdown, const struct model *model)
{
	_cleanup_free_ uint64_t *lived_ns = lifetimes(model);
	int r = lived_ns && all->ids ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < breakdown->rows.count; i++) {
		uint32_t key = breakdown->rows.items[i].key;
		const struct short_key short_key = {
			.name = model->processes.items[key].name,
			.rank = model->processes.items[key].rank,
		};

		all->ids[i] = MODEL_NONE;
		if (lived_ns[key] >= model_elapsed_ns(model) / 2)
			continue;
		r = intern_add(&all->names, &short_key, sizeof(short_key), &all->ids[i]);
		if (r > 0) {
			r = array_append(&all->counts, 0);
			r = r ?: array_append(&all->rows, 0);
		}
		if (r >= 0)
			all->counts.items[all->ids[i]]++;
	}
	return MIN(r, 0);
}

/* Rows come with most samples first: the first of a name stands for the others. */
static void merge_rows(struct breakdown *breakdown, struct short_processes *all)
{
	size_t kept = 0;

	for (size_t i = 0; i < breakdown->rows.count; i++) {
		const struct breakdown_row row = breakdown->rows.items[i];
		uint32_t id = all->ids[i], *at = id == MODEL_NONE ? NULL : &all->rows.items[id];

		if (at && all->counts.items[id] >= BREAKDOWN_MERGED_PROCESSES && *at) {
			if (breakdown->sums.self)
				energy_sums_join(
					&breakdown->sums.self[breakdown->rows.items[*at - 1].sums],
					&breakdown->sums.self[row.sums]);
			breakdown->rows.items[*at - 1].merged++;
			breakdown->rows.items[*at - 1].self_samples += row.self_samples;
			breakdown->rows.items[*at - 1].total_samples += row.total_samples;
			continue;
		}
		breakdown->rows.items[kept++] = row;
		if (at)
			*at = (uint32_t)kept;
	}
	breakdown->rows.count = kept;
}

int breakdown_merge_processes(struct breakdown *breakdown, const struct model *model)
{
	struct short_processes all = {.ids = calloc(breakdown->rows.count + 1, sizeof(*all.ids))};
	struct order order = {breakdown, model, BREAKDOWN_SORT_SELF};
	int r = count_short(&all, breakdown, model);

	if (r == 0) {
		merge_rows(breakdown, &all);
		if (breakdown->rows.count)
			qsort_r(breakdown->rows.items, breakdown->rows.count,
				sizeof(*breakdown->rows.items), compare_rows, &order);
	}
	free(all.ids);
	intern_done(&all.names);
	array_done(&all.counts);
	array_done(&all.rows);
	return r;
}

void breakdown_done(struct breakdown *breakdown)
{
	array_done(&breakdown->rows);
	array_done(&breakdown->lines);
	array_done(&breakdown->cgroups);
	array_done(&breakdown->ranks);
	energy_key_sums_done(&breakdown->sums);
}
