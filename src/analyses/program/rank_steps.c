/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/rank_steps.h"

#include <errno.h>
#include <stdlib.h>

uint32_t rank_of_row(const struct trace_view *view, const struct trace_event *event)
{
	const struct model *model = view->trace->recorded;
	uint32_t thread = view->trace->tracks.items[event->track].recorded;

	if (!model)
		return view->rank;
	return thread ? model->processes.items[model->threads.items[thread - 1].process].rank
		      : MODEL_NONE;
}

static int compare_steps(const void *left, const void *right)
{
	const struct rank_step *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static int add_step(struct rank_steps *steps, const struct trace_view *first,
	const struct trace_view *view, const struct trace_event *event)
{
	uint32_t rank = rank_of_row(view, event);
	struct rank_step step = {
		.start_ns = rank_common_ns(first, view, trace_view_start_ns(view, event)),
		.end_ns = rank_common_ns(first, view, trace_view_end_ns(view, event)),
	};
	int r;

	if (rank == MODEL_NONE || event->duration_ns == TRACE_NO_DURATION ||
		!trace_step_number(trace_text(view->trace, event->name), &step.number) ||
		step.number == RANK_NO_STEP || !trace_view_has(view, event))
		return 0;
	steps->first_ns = MIN(steps->first_ns, step.start_ns);
	steps->last_ns = MAX(steps->last_ns, step.end_ns);
	r = intern_add(&steps->ranks, &rank, sizeof(rank), &step.rank);
	return r < 0 ? r : array_append(&steps->items, step);
}

static int count_numbers(struct rank_steps *steps)
{
	struct map_u64 last_rank = {0}; /* + 1, that has the number */
	int r = 0;

	array_foreach (&steps->items, step) {
		uint64_t known = 0, ranks = 0;

		map_u64_get(&last_rank, step->number, &known);
		if (known == step->rank + 1ULL)
			continue;
		map_u64_get(&steps->numbers, step->number, &ranks);
		r = map_u64_set(&steps->numbers, step->number, ranks + 1);
		if (r == 0)
			r = map_u64_set(&last_rank, step->number, step->rank + 1ULL);
		if (r < 0)
			break;
	}
	map_u64_done(&last_rank);
	return r;
}

int rank_steps_init(struct rank_steps *steps, const struct trace_view *views, size_t view_count)
{
	int r = 0;

	*steps = (struct rank_steps){.first_ns = INT64_MAX, .last_ns = INT64_MIN};
	for (size_t i = 0; i < view_count; i++) {
		array_foreach (&views[i].trace->events, event) {
			if (r == 0 && event->category == TRACE_USER_ANNOTATION)
				r = add_step(steps, views, &views[i], event);
		}
	}
	if (steps->items.count)
		qsort(steps->items.items, steps->items.count, sizeof(*steps->items.items),
			compare_steps);
	if (r == 0)
		r = count_numbers(steps);
	if (r < 0)
		rank_steps_done(steps);
	return r;
}

void rank_steps_done(struct rank_steps *steps)
{
	intern_done(&steps->ranks);
	array_done(&steps->items);
	map_u64_done(&steps->numbers);
}

uint64_t rank_step_at(const struct rank_steps *steps, uint32_t rank, int64_t time_ns)
{
	struct rank_step key = {.start_ns = time_ns, .number = RANK_NO_STEP};
	size_t first = 0, last = steps->items.count;
	const struct rank_step *step;

	if (!intern_find(&steps->ranks, &rank, sizeof(rank), &key.rank))
		return RANK_NO_STEP;
	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (compare_steps(&steps->items.items[middle], &key) < 0)
			first = middle + 1;
		else
			last = middle;
	}
	if (!first)
		return RANK_NO_STEP;
	step = &steps->items.items[first - 1];
	return step->rank == key.rank && time_ns < step->end_ns ? step->number : RANK_NO_STEP;
}
