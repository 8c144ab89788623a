/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/rank_use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

/* Strings are interned: equal names are equal pointers. */
struct key {
	const char *name, *domain;
	uint32_t is_step, rank;
};

struct rank_sum {
	struct key key;
	struct rank_time time;
};

struct summing {
	struct intern keys;
	ARRAY_OF(struct rank_sum) sums; /* by id of the key */
};

bool model_has_ranks(const struct model *model)
{
	array_foreach (&model->processes, process) {
		if (process->rank != MODEL_NONE)
			return true;
	}
	return false;
}

uint64_t rank_time_mean_ns(const struct rank_time *time)
{
	return time->count ? time->total_ns / time->count : 0;
}

uint64_t rank_row_spread_ns(const struct rank_use *use, const struct rank_row *row)
{
	return rank_time_mean_ns(&use->times.items[row->slowest]) -
	       rank_time_mean_ns(&use->times.items[row->fastest]);
}

static int add_time(struct summing *summing, const struct key *key, uint64_t time_ns)
{
	struct rank_sum new = {.key = *key, .time.rank = key->rank};
	struct rank_sum *sum;
	uint32_t id;
	int r;

	if (key->rank == MODEL_NONE)
		return 0;
	r = intern_add(&summing->keys, key, sizeof(*key), &id);
	if (r > 0)
		r = array_append(&summing->sums, new);
	if (r < 0)
		return r;
	sum = &summing->sums.items[id];
	sum->time.count++;
	sum->time.total_ns += time_ns;
	return 0;
}

static int add_all(struct summing *summing, const struct model *model)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->ranges.count; i++) {
		const struct model_range *range = &model->ranges.items[i];
		const struct key key = {
			.name = range->name,
			.domain = range->domain,
			.rank = model->processes.items[range->process].rank,
		};

		if (!range->is_mark && !range->is_open)
			r = add_time(summing, &key, range->end_ns - range->start_ns);
	}
	for (size_t i = 0; r == 0 && i < model->steps.count; i++) {
		const struct model_step *step = &model->steps.items[i];
		const struct key key = {
			.name = step->name,
			.domain = "",
			.is_step = 1,
			.rank = model->processes.items[step->process].rank,
		};

		if (!step->is_cut)
			r = add_time(summing, &key, step->end_ns - step->start_ns);
	}
	return r;
}

static bool is_same_row(const struct key *a, const struct key *b)
{
	return a->name == b->name && a->domain == b->domain && a->is_step == b->is_step;
}

/* By row, then by rank. */
static int compare_sums(const void *left, const void *right)
{
	const struct rank_sum *a = left, *b = right;
	int order;

	if (a->key.is_step != b->key.is_step)
		return a->key.is_step ? -1 : 1;
	order = strcmp(a->key.domain, b->key.domain);
	if (!order)
		order = strcmp(a->key.name, b->key.name);
	if (order)
		return order;
	return a->key.rank < b->key.rank ? -1 : a->key.rank > b->key.rank;
}

static int add_row(struct rank_use *use, const struct rank_sum *sums, uint32_t count)
{
	uint32_t first = (uint32_t)use->times.count;
	struct rank_row row = {
		.name = sums->key.name,
		.domain = sums->key.domain,
		.is_step = sums->key.is_step != 0,
		.first_rank = first,
		.rank_count = count,
		.slowest = first,
		.fastest = first,
	};
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		uint64_t mean_ns = rank_time_mean_ns(&sums[i].time);

		r = array_append(&use->times, sums[i].time);
		if (r < 0)
			return r;
		if (mean_ns > rank_time_mean_ns(&use->times.items[row.slowest]))
			row.slowest = first + i;
		if (mean_ns < rank_time_mean_ns(&use->times.items[row.fastest]))
			row.fastest = first + i;
	}
	return r ?: array_append(&use->rows, row);
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct rank_use *use = context;
	const struct rank_row *a = left, *b = right;
	uint64_t of_a = rank_row_spread_ns(use, a) * use->times.items[a->slowest].count;
	uint64_t of_b = rank_row_spread_ns(use, b) * use->times.items[b->slowest].count;

	if (a->is_step != b->is_step)
		return a->is_step ? -1 : 1;
	if (of_a != of_b)
		return of_a > of_b ? -1 : 1;
	return a->first_rank < b->first_rank ? -1 : a->first_rank > b->first_rank;
}

static int add_rows(struct rank_use *use, struct summing *summing)
{
	const struct rank_sum *sums = summing->sums.items;
	size_t count = summing->sums.count, last;
	int r = 0;

	if (count)
		qsort(summing->sums.items, count, sizeof(*sums), compare_sums);
	for (size_t i = 0; r == 0 && i < count; i = last) {
		for (last = i + 1; last < count && is_same_row(&sums[i].key, &sums[last].key);)
			last++;
		if (last - i > 1)
			r = add_row(use, &sums[i], (uint32_t)(last - i));
	}
	if (use->rows.count)
		qsort_r(use->rows.items, use->rows.count, sizeof(*use->rows.items), compare_rows,
			use);
	return r;
}

int rank_use_init(struct rank_use *use, const struct model *model)
{
	struct summing summing = {0};
	int r;

	*use = (struct rank_use){0};
	if (!model_has_ranks(model))
		return 0;
	r = add_all(&summing, model);
	r = r ?: add_rows(use, &summing);
	intern_done(&summing.keys);
	array_done(&summing.sums);
	if (r < 0)
		rank_use_done(use);
	return r;
}

void rank_use_done(struct rank_use *use)
{
	array_done(&use->rows);
	array_done(&use->times);
}
