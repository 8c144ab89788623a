/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/breakdown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/counts.h"
#include "analyses/dimensions.h"

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

static int add_row(struct breakdown *breakdown, uint32_t key, uint64_t self, uint64_t total)
{
	if (!total)
		return 0;
	return array_append(&breakdown->rows, (struct breakdown_row){key, self, total});
}

static int count_frames(struct breakdown *breakdown, const struct model *model,
	const struct selected *selected, const uint32_t *keys, size_t key_count)
{
	_cleanup_stack_counts_ struct stack_counts stacks = {0};
	_cleanup_frame_counts_ struct frame_counts counts = {0};
	int r = stack_counts_init(&stacks, model, selected);

	r = r ?: frame_counts_init(&counts, model, &stacks, keys, key_count);
	for (size_t i = 0; r == 0 && i < key_count; i++)
		r = add_row(breakdown, (uint32_t)i, counts.self[i], counts.total[i]);
	r = r ?: add_row(breakdown, MODEL_NONE, stacks.no_stack, stacks.no_stack);
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
		r = add_row(breakdown, (uint32_t)i, counts[i], counts[i]);
	return r ?: add_row(breakdown, MODEL_NONE, without, without);
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

void breakdown_done(struct breakdown *breakdown)
{
	array_done(&breakdown->rows);
	array_done(&breakdown->lines);
	array_done(&breakdown->cgroups);
}
