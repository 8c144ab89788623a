/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/ranks.h"

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
	uint64_t last_wait; /* the last sample that counted, + 1 */
};

struct summing {
	const struct model *model;
	struct intern keys;
	ARRAY_OF(struct rank_sum) sums; /* by id of the key */
	struct span_set spans;          /* their rows are sums; steps are of the process */
	ARRAY_OF(uint32_t) threads;     /* that have the spans */
	bool has_several;               /* ranks */
};

const char *rank_difference_name(enum rank_difference difference)
{
	static const char *const names[] = {
		[RANK_DIFFERENCE_CPU] = "CPU time",
		[RANK_DIFFERENCE_WAIT] = "waiting",
		[RANK_DIFFERENCE_DEVICE] = "device work",
	};

	return names[difference];
}

static uint64_t mean_ns(const struct rank_time *time, uint64_t sum_ns)
{
	return time->count ? sum_ns / time->count : 0;
}

uint64_t rank_time_mean_ns(const struct rank_time *time)
{
	return mean_ns(time, time->total_ns);
}

uint64_t rank_row_spread_ns(const struct ranks *ranks, const struct rank_row *row)
{
	return rank_time_mean_ns(&ranks->times.items[row->slowest]) -
	       rank_time_mean_ns(&ranks->times.items[row->fastest]);
}

/* ---- steps and ranges ---- */

static int add_time(struct summing *summing, const struct key *key, struct range_span span)
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
	sum->time.total_ns += span.end_ns - span.start_ns;
	summing->has_several |= key->rank != summing->sums.items[0].key.rank;
	r = array_append(&summing->threads, span.thread);
	return r < 0 ? r
		     : span_set_add(&summing->spans, span.start_ns, span.end_ns, span.process,
			       key->is_step ? MODEL_NONE : span.thread, id);
}

static int add_ranges(struct summing *summing, const struct model *model)
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
			r = add_time(summing, &key,
				(struct range_span){.start_ns = range->start_ns,
					.end_ns = range->end_ns,
					.process = range->process,
					.thread = range->thread});
	}
	return r;
}

static int add_steps(struct summing *summing, const struct model *model)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->steps.count; i++) {
		const struct model_step *step = &model->steps.items[i];
		const struct key key = {
			.name = step->name,
			.domain = "",
			.is_step = 1,
			.rank = model->processes.items[step->process].rank,
		};

		if (!step->is_cut)
			r = add_time(summing, &key,
				(struct range_span){.start_ns = step->start_ns,
					.end_ns = step->end_ns,
					.process = step->process,
					.thread = step->thread});
	}
	return r;
}

/* ---- what ran, and waited, in them ---- */

static int found_wait(void *context, const struct range_moment *moment, uint32_t span)
{
	struct summing *summing = context;
	struct rank_sum *sum = &summing->sums.items[summing->spans.rows.items[span]];
	uint64_t duration_ns = summing->model->samples.items[moment->index].duration_ns;

	if (summing->threads.items[span] != moment->thread)
		return 0;
	if (sum->last_wait != moment->index + 1ULL)
		sum->time.wait_ns += MIN(
			duration_ns, moment->time_ns - summing->spans.spans.items[span].start_ns);
	sum->last_wait = moment->index + 1ULL;
	return 0;
}

static int add_waits(struct summing *summing)
{
	_cleanup_range_moments_ struct range_moments moments = {0};
	const struct model *model = summing->model;
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];

		if (sample->wait != WIRE_WAIT_NONE)
			r = array_append(&moments.items,
				(struct range_moment){
					.time_ns = sample->time_ns,
					.process = model->threads.items[sample->thread].process,
					.thread = sample->thread,
					.index = (uint32_t)i,
				});
	}
	if (r < 0)
		return r;
	return range_find_spans(summing->spans.spans.items, summing->spans.spans.count,
		moments.items.items, moments.items.count, found_wait, summing);
}

static int add_costs(struct summing *summing, const struct selected *selected)
{
	_cleanup_free_ struct span_cost *costs = calloc(summing->sums.count + 1, sizeof(*costs));
	int r = costs ? span_costs(&summing->spans, summing->model, selected, costs) : -ENOMEM;

	if (r < 0)
		return r;
	for (size_t i = 0; i < summing->sums.count; i++)
		summing->sums.items[i].time.cost = costs[i];
	return add_waits(summing);
}

/* ---- rows ---- */

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

/* What the slowest rank has more of than the fastest, where that is about as large as the spread.
 */
static void find_difference(
	const struct ranks *ranks, const struct model *model, struct rank_row *row)
{
	const struct rank_time *slow = &ranks->times.items[row->slowest];
	const struct rank_time *fast = &ranks->times.items[row->fastest];
	uint64_t sample_ns = model_has_time(model) ? model_sample_weight_ns(model) : 0;
	const uint64_t sums_ns[][2] = {
		[RANK_DIFFERENCE_CPU] = {slow->cost.samples * sample_ns,
			fast->cost.samples * sample_ns},
		[RANK_DIFFERENCE_WAIT] = {slow->wait_ns, fast->wait_ns},
		[RANK_DIFFERENCE_DEVICE] = {slow->cost.device_busy_ns, fast->cost.device_busy_ns},
	};
	uint64_t spread_ns = rank_row_spread_ns(ranks, row), most_ns = spread_ns / 3;

	for (int i = RANK_DIFFERENCE_CPU; i <= RANK_DIFFERENCE_DEVICE; i++) {
		uint64_t of_slow = mean_ns(slow, sums_ns[i][0]),
			 of_fast = mean_ns(fast, sums_ns[i][1]);

		if (of_slow <= of_fast || of_slow - of_fast < most_ns ||
			of_slow - of_fast > spread_ns * 3)
			continue;
		row->difference = (enum rank_difference)i;
		row->difference_ns = most_ns = of_slow - of_fast;
	}
}

static int add_row(
	struct ranks *ranks, const struct model *model, const struct rank_sum *sums, uint32_t count)
{
	uint32_t first = (uint32_t)ranks->times.count;
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
		uint64_t rank_ns = rank_time_mean_ns(&sums[i].time);

		r = array_append(&ranks->times, sums[i].time);
		if (r < 0)
			return r;
		if (rank_ns > rank_time_mean_ns(&ranks->times.items[row.slowest]))
			row.slowest = first + i;
		if (rank_ns < rank_time_mean_ns(&ranks->times.items[row.fastest]))
			row.fastest = first + i;
	}
	find_difference(ranks, model, &row);
	return array_append(&ranks->rows, row);
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct ranks *ranks = context;
	const struct rank_row *a = left, *b = right;
	uint64_t of_a = rank_row_spread_ns(ranks, a) * ranks->times.items[a->slowest].count;
	uint64_t of_b = rank_row_spread_ns(ranks, b) * ranks->times.items[b->slowest].count;

	if (a->is_step != b->is_step)
		return a->is_step ? -1 : 1;
	if (of_a != of_b)
		return of_a > of_b ? -1 : 1;
	return a->first_rank < b->first_rank ? -1 : a->first_rank > b->first_rank;
}

static int add_rows(struct ranks *ranks, struct summing *summing)
{
	const struct rank_sum *sums = summing->sums.items;
	size_t count = summing->sums.count, last;
	int r = 0;

	qsort(summing->sums.items, count, sizeof(*sums), compare_sums);
	for (size_t i = 0; r == 0 && i < count; i = last) {
		for (last = i + 1; last < count && is_same_row(&sums[i].key, &sums[last].key);)
			last++;
		if (last - i > 1)
			r = add_row(ranks, summing->model, &sums[i], (uint32_t)(last - i));
	}
	if (ranks->rows.count)
		qsort_r(ranks->rows.items, ranks->rows.count, sizeof(*ranks->rows.items),
			compare_rows, ranks);
	return r;
}

static int add_times(struct ranks *ranks, const struct rank_input *input)
{
	struct summing summing = {.model = input->model};
	int r = add_ranges(&summing, input->model);

	if (r == 0)
		r = add_steps(&summing, input->model);
	if (r == 0 && summing.has_several) {
		r = add_costs(&summing, input->selected);
		if (r == 0)
			r = add_rows(ranks, &summing);
	}
	intern_done(&summing.keys);
	array_done(&summing.sums);
	array_done(&summing.threads);
	span_set_done(&summing.spans);
	return r;
}

int ranks_init(struct ranks *ranks, const struct rank_input *input)
{
	int r;

	*ranks = (struct ranks){.collective = ""};
	r = input->model ? add_times(ranks, input) : 0;
	if (r == 0 && input->definition.stragglers)
		r = input->definition.stragglers(ranks, input);
	else if (r == 0)
		r = collectives_init(&ranks->collectives, input->views, input->view_count);
	if (r < 0)
		ranks_done(ranks);
	return r;
}

void ranks_done(struct ranks *ranks)
{
	array_done(&ranks->rows);
	array_done(&ranks->times);
	array_done(&ranks->lateness);
	collectives_done(&ranks->collectives);
}
