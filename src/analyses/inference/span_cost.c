/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/inference/span_cost.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/device/busy.h"

/* A sample or a piece of work, and a row that it counts in. */
struct hit {
	uint32_t moment, row;
};

struct hits {
	const uint32_t *rows; /* of spans */
	ARRAY_OF(struct hit) found;
};

int span_set_add(struct span_set *set, uint64_t start_ns, uint64_t end_ns, uint32_t process,
	uint32_t thread, uint32_t row)
{
	struct range_span span = {
		.start_ns = start_ns,
		.end_ns = end_ns,
		.process = process,
		.thread = thread,
		.index = (uint32_t)set->spans.count,
	};
	int r = array_append(&set->rows, row);

	return r ?: array_append(&set->spans, span);
}

void span_set_done(struct span_set *set)
{
	array_done(&set->spans);
	array_done(&set->rows);
}

static int found_span(void *context, const struct range_moment *moment, uint32_t span)
{
	struct hits *hits = context;

	return array_append(
		&hits->found, (struct hit){.moment = moment->index, .row = hits->rows[span]});
}

static int compare_hits(const void *left, const void *right)
{
	const struct hit *a = left, *b = right;

	if (a->moment != b->moment)
		return a->moment < b->moment ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

/* Each pair of a moment and a row once, in the order of the moments. */
static void sort_hits(struct hits *hits)
{
	size_t kept = 0;

	if (!hits->found.count)
		return;
	qsort(hits->found.items, hits->found.count, sizeof(*hits->found.items), compare_hits);
	array_foreach (&hits->found, hit) {
		if (!kept || compare_hits(&hits->found.items[kept - 1], hit) != 0)
			hits->found.items[kept++] = *hit;
	}
	hits->found.count = kept;
}

/*
 * A thread with spans of its own is in these alone. What other threads do meanwhile, such as those
 * of a pool, they do for the process's spans, whosever these are.
 */
static int find_of_others(const struct span_set *set, const struct model *model,
	struct range_moments *moments, struct hits *hits)
{
	_cleanup_free_ bool *has_spans = calloc(model->threads.count + 1, sizeof(bool));
	struct span_set of_process = {0};
	size_t kept = 0;
	int r = 0;

	if (!has_spans)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < set->spans.count; i++) {
		struct range_span span = set->spans.items[i];

		if (span.thread == MODEL_NONE)
			continue;
		has_spans[span.thread] = true;
		span.thread = MODEL_NONE;
		r = array_append(&of_process.spans, span);
	}
	array_foreach (&moments->items, moment) {
		if (moment->thread == MODEL_NONE || !has_spans[moment->thread])
			moments->items.items[kept++] = *moment;
	}
	moments->items.count = kept;
	if (r == 0)
		r = range_find_spans(of_process.spans.items, of_process.spans.count,
			moments->items.items, kept, found_span, hits);
	span_set_done(&of_process);
	return r;
}

static int find_hits(const struct span_set *set, const struct model *model,
	struct range_moments *moments, struct hits *hits)
{
	int r = range_find_spans(set->spans.items, set->spans.count, moments->items.items,
		moments->items.count, found_span, hits);

	r = r ?: find_of_others(set, model, moments, hits);
	if (r == 0)
		sort_hits(hits);
	return r;
}

static int add_samples(const struct span_set *set, const struct model *model,
	const struct selected *selected, struct span_cost *costs)
{
	_cleanup_range_moments_ struct range_moments moments = {0};
	struct hits hits = {.rows = set->rows.items};
	int r = range_moments_add_samples(&moments, model, selected);

	r = r ?: find_hits(set, model, &moments, &hits);
	for (size_t i = 0; r == 0 && i < hits.found.count; i++)
		costs[hits.found.items[i].row].samples++;
	array_done(&hits.found);
	return r;
}

/* Works lie in the order of their starts. */
static int add_works(const struct span_set *set, const struct model *model, struct span_cost *costs)
{
	_cleanup_range_moments_ struct range_moments moments = {0};
	struct hits hits = {.rows = set->rows.items};
	struct device_busy busy = {0};
	int r = range_moments_add_launches(&moments, model);

	r = r ?: find_hits(set, model, &moments, &hits);
	for (size_t i = 0; r == 0 && i < hits.found.count; i++) {
		const struct hit *hit = &hits.found.items[i];
		const struct model_launched work = model_launched(model, hit->moment);
		struct span_cost *cost = &costs[hit->row];

		cost->works++;
		r = device_busy_add(&busy, &work, hit->row, &cost->device_busy_ns);
	}
	device_busy_done(&busy);
	array_done(&hits.found);
	return r;
}

int span_costs(const struct span_set *set, const struct model *model,
	const struct selected *selected, struct span_cost *costs)
{
	int r = add_samples(set, model, selected, costs);

	return r ?: add_works(set, model, costs);
}

static int compare_starts(const void *left, const void *right)
{
	const struct range_span *a = left, *b = right;

	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

uint64_t span_set_covered_ns(const struct span_set *set, uint32_t row)
{
	ARRAY_OF(struct range_span) spans = {0};
	uint64_t covered_ns = 0, until_ns = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < set->spans.count; i++) {
		if (row == MODEL_NONE || set->rows.items[i] == row)
			r = array_append(&spans, set->spans.items[i]);
	}
	if (r == 0 && spans.count)
		qsort(spans.items, spans.count, sizeof(*spans.items), compare_starts);
	array_foreach (&spans, span) {
		uint64_t start_ns = MAX(span->start_ns, until_ns);

		covered_ns += span->end_ns > start_ns ? span->end_ns - start_ns : 0;
		until_ns = MAX(until_ns, span->end_ns);
	}
	array_done(&spans);
	return r < 0 ? UINT64_MAX : covered_ns;
}
