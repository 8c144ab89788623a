/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/step_use.h"

#include <stdlib.h>

#include "analyses/statistics.h"
#include "base/macros.h"

struct times {
	ARRAY_OF(uint64_t) items;
};

static int find_rows(struct step_use *use, const struct model *model)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < model->steps.count; i++) {
		const struct model_step *step = &model->steps.items[i];

		if (i && step[-1].process == step->process && step[-1].name == step->name)
			continue;
		r = array_append(&use->rows, (struct step_row){
						     .name = step->name,
						     .process = step->process,
						     .first_step = i,
					     });
	}
	return r;
}

static uint32_t end_of_row(const struct step_use *use, const struct model *model, size_t row)
{
	return row + 1 < use->rows.count ? use->rows.items[row + 1].first_step
					 : (uint32_t)model->steps.count;
}

/* The step of a row that a moment lies in; MODEL_NONE: in none. */
static uint32_t find_step(
	const struct step_use *use, const struct model *model, size_t row, uint64_t time_ns)
{
	uint32_t first = use->rows.items[row].first_step, last = end_of_row(use, model, row);

	while (first < last) {
		uint32_t middle = first + (last - first) / 2;

		if (model->steps.items[middle].end_ns <= time_ns)
			first = middle + 1;
		else
			last = middle;
	}
	return first < end_of_row(use, model, row) && model->steps.items[first].start_ns <= time_ns
		       ? first
		       : MODEL_NONE;
}

static void add_samples(
	struct step_use *use, const struct model *model, const struct selected *selected)
{
	for (size_t i = 0; i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];
		uint32_t process = model->threads.items[sample->thread].process, step;

		if (sample->wait != WIRE_WAIT_NONE || (selected && !selected->samples[i]))
			continue;
		for (size_t row = 0; row < use->rows.count; row++) {
			if (use->rows.items[row].process != process)
				continue;
			step = find_step(use, model, row, sample->time_ns);
			if (step != MODEL_NONE)
				use->costs.items[step].samples++;
		}
	}
}

static void add_work(struct step_cost *cost, const struct model_launched *work)
{
	uint64_t start_ns = MAX(work->start_ns, cost->busy_until_ns);

	cost->device_busy_ns += work->end_ns > start_ns ? work->end_ns - start_ns : 0;
	cost->works++;
	cost->busy_until_ns = MAX(cost->busy_until_ns, work->end_ns);
}

/* Work belongs to the step that launched it, however late it ran. */
static void add_works(struct step_use *use, const struct model *model)
{
	for (size_t i = 0; i < model_launched_count(model); i++) {
		const struct model_launched work = model_launched(model, i);
		uint64_t time_ns = work.launch_ns ? work.launch_ns : work.start_ns;
		uint32_t step;

		for (size_t row = 0; row < use->rows.count; row++) {
			if (use->rows.items[row].process != work.process)
				continue;
			step = find_step(use, model, row, time_ns);
			if (step != MODEL_NONE)
				add_work(&use->costs.items[step], &work);
		}
	}
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static void take_times(struct step_row *row, struct times *times)
{
	row->count = times->items.count;
	if (!row->count)
		return;
	qsort(times->items.items, times->items.count, sizeof(*times->items.items), compare_times);
	array_foreach (&times->items, time_ns)
		row->total_ns += *time_ns;
	row->minimum_ns = times->items.items[0];
	row->maximum_ns = times->items.items[row->count - 1];
	row->p50_ns = statistics_median_ns(times->items.items, row->count);
	row->p95_ns = times->items.items[statistics_rank(row->count, 95)];
}

static int sum_up(struct step_use *use, const struct model *model)
{
	struct times times = {0};
	int r = 0;

	for (size_t row = 0; r == 0 && row < use->rows.count; row++) {
		struct step_row *sum = &use->rows.items[row];

		array_clear(&times.items);
		for (uint32_t i = sum->first_step; r == 0 && i < end_of_row(use, model, row); i++) {
			const struct model_step *step = &model->steps.items[i];

			sum->samples += use->costs.items[i].samples;
			sum->device_busy_ns += use->costs.items[i].device_busy_ns;
			sum->cut_count += step->is_cut;
			if (step->is_cut)
				continue;
			r = array_append(&times.items, step->end_ns - step->start_ns);
			r = r ?: array_append(&use->slowest, i);
		}
		take_times(sum, &times);
		r = r ?: step_use_mark(use, model, sum, end_of_row(use, model, row));
	}
	array_done(&times.items);
	return r;
}

static int compare_steps(const void *left, const void *right, void *context)
{
	const struct model *model = context;
	const struct model_step *a = &model->steps.items[*(const uint32_t *)left];
	const struct model_step *b = &model->steps.items[*(const uint32_t *)right];
	uint64_t of_a = a->end_ns - a->start_ns, of_b = b->end_ns - b->start_ns;

	if (of_a != of_b)
		return of_a > of_b ? -1 : 1;
	return a < b ? -1 : a > b;
}

int step_use_init(struct step_use *use, const struct model *model, const struct selected *selected)
{
	int r;

	*use = (struct step_use){0};
	r = array_reserve(&use->costs, model->steps.count);
	for (size_t i = 0; r == 0 && i < model->steps.count; i++)
		r = array_append(&use->costs, (struct step_cost){0});
	r = r ?: find_rows(use, model);
	if (r == 0) {
		add_samples(use, model, selected);
		add_works(use, model);
		r = sum_up(use, model);
	}
	if (r < 0) {
		step_use_done(use);
		return r;
	}
	if (use->slowest.count)
		qsort_r(use->slowest.items, use->slowest.count, sizeof(*use->slowest.items),
			compare_steps, (void *)model);
	return 0;
}

void step_use_done(struct step_use *use)
{
	array_done(&use->rows);
	array_done(&use->costs);
	array_done(&use->slowest);
}
