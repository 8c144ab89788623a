/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/inference/table_joules.h"

#include <stdlib.h>

struct spans {
	ARRAY_OF(struct energy_span) items;
};

static struct energy_span span_of_step(const struct model_step *step)
{
	return (struct energy_span){
		.start_ns = step->start_ns,
		.end_ns = step->end_ns,
		.process = step->process,
		.thread = MODEL_NONE,
	};
}

struct joules joules_of_step(const struct span_energy *energy, const struct model_step *step)
{
	const struct energy_span span = span_of_step(step);

	return joules_of_spans(energy, &span, 1);
}

int joules_of_steps(const struct span_energy *energy, const struct model *model,
	const struct step_row *row, struct joules *ret_joules)
{
	struct spans spans = {0};
	int r = 0;

	for (uint32_t i = row->first_step; r == 0 && energy && i < model->steps.count; i++) {
		const struct model_step *step = &model->steps.items[i];

		if (step->process != row->process || step->name != row->name)
			break;
		if (!step->is_cut)
			r = array_append(&spans.items, span_of_step(step));
	}
	if (r == 0)
		*ret_joules = joules_of_spans(energy, spans.items.items, spans.items.count);
	array_done(&spans.items);
	return r;
}

/* As the rows of range_use: strings are interned. */
static int compare_kinds(const struct range_row *row, const struct model_range *range)
{
	bool of_process = range->thread == MODEL_NONE;

	if (row->name != range->name)
		return row->name < range->name ? -1 : 1;
	if (row->domain != range->domain)
		return row->domain < range->domain ? -1 : 1;
	if (row->is_mark != range->is_mark)
		return row->is_mark < range->is_mark ? -1 : 1;
	return row->of_process < of_process ? -1 : row->of_process > of_process;
}

static int compare_ranges(const void *left, const void *right, void *context)
{
	const struct model *model = context;
	const struct model_range *a = &model->ranges.items[*(const uint32_t *)left];
	const struct range_row row = {
		.name = a->name,
		.domain = a->domain,
		.is_mark = a->is_mark,
		.of_process = a->thread == MODEL_NONE,
	};

	return compare_kinds(&row, &model->ranges.items[*(const uint32_t *)right]);
}

int range_index_init(struct range_index *index, const struct model *model)
{
	int r;

	*index = (struct range_index){0};
	r = array_reserve(&index->ranges, model->ranges.count);
	for (uint32_t i = 0; r == 0 && i < model->ranges.count; i++)
		r = array_append(&index->ranges, i);
	if (r == 0 && index->ranges.count)
		qsort_r(index->ranges.items, index->ranges.count, sizeof(*index->ranges.items),
			compare_ranges, (void *)model);
	return r;
}

void range_index_done(struct range_index *index)
{
	array_done(&index->ranges);
}

/* The first range of the row, or where it would be. */
static size_t find_first(
	const struct range_index *index, const struct model *model, const struct range_row *row)
{
	size_t first = 0, last = index->ranges.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		uint32_t range = index->ranges.items[middle];

		if (compare_kinds(row, &model->ranges.items[range]) > 0)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

int joules_of_ranges(const struct span_energy *energy, const struct model *model,
	const struct range_index *index, const struct range_row *row, struct joules *ret_joules)
{
	struct spans spans = {0};
	int r = 0;

	for (size_t i = energy ? find_first(index, model, row) : SIZE_MAX;
		r == 0 && i < index->ranges.count; i++) {
		const struct model_range *range = &model->ranges.items[index->ranges.items[i]];

		if (compare_kinds(row, range) != 0)
			break;
		r = array_append(&spans.items, (struct energy_span){
						       .start_ns = range->start_ns,
						       .end_ns = range->end_ns,
						       .process = range->process,
						       .thread = range->thread,
					       });
	}
	if (r == 0)
		*ret_joules = joules_of_spans(energy, spans.items.items, spans.items.count);
	array_done(&spans.items);
	return r;
}
