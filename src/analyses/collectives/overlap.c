/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/collectives/overlap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Kernels that are looked at beside one collective, at most. */
#define KERNELS_MAX 4096

static int compare_starts(const void *left, const void *right, void *context)
{
	const struct trace_view_work *works = context;
	const struct trace_view_work *a = &works[*(const uint32_t *)left];
	const struct trace_view_work *b = &works[*(const uint32_t *)right];

	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static int add_busy(struct collective_overlap *overlap, const struct trace_view_work *work)
{
	struct trace_view_times *last =
		overlap->busy.count ? &overlap->busy.items[overlap->busy.count - 1] : NULL;
	uint64_t before_ns = 0;
	int r;

	if (last && work->start_ns <= last->end_ns) {
		last->end_ns = MAX(last->end_ns, work->end_ns);
		return 0;
	}
	if (last)
		before_ns = overlap->busy_ns.items[overlap->busy.count - 1] +
			    ((uint64_t)last->end_ns - (uint64_t)last->start_ns);
	r = array_append(&overlap->busy,
		(struct trace_view_times){.start_ns = work->start_ns, .end_ns = work->end_ns});
	return r < 0 ? r : array_append(&overlap->busy_ns, before_ns);
}

int collective_overlap_init(
	struct collective_overlap *overlap, const struct trace_view *view, uint32_t device)
{
	int r = 0;

	*overlap = (struct collective_overlap){.view = view};
	for (uint32_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];

		if (work->kind == TRACE_COMPUTE && work->end_ns > work->start_ns &&
			view->streams.items[work->stream].device == device)
			r = array_append(&overlap->kernels, i);
	}
	if (overlap->kernels.count)
		qsort_r(overlap->kernels.items, overlap->kernels.count,
			sizeof(*overlap->kernels.items), compare_starts, view->works.items);
	for (size_t i = 0; r == 0 && i < overlap->kernels.count; i++) {
		const struct trace_view_work *work = &view->works.items[overlap->kernels.items[i]];

		overlap->longest_ns =
			MAX(overlap->longest_ns, trace_difference_ns(work->end_ns, work->start_ns));
		r = add_busy(overlap, work);
	}
	return r;
}

void collective_overlap_done(struct collective_overlap *overlap)
{
	array_done(&overlap->kernels);
	array_done(&overlap->busy);
	array_done(&overlap->busy_ns);
}

/* Busy time before a moment. */
static uint64_t busy_before(const struct collective_overlap *overlap, int64_t time_ns)
{
	size_t first = 0, end = overlap->busy.count;
	const struct trace_view_times *busy;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (overlap->busy.items[middle].start_ns < time_ns)
			first = middle + 1;
		else
			end = middle;
	}
	if (!first)
		return 0;
	busy = &overlap->busy.items[first - 1];
	return overlap->busy_ns.items[first - 1] +
	       ((uint64_t)MIN(time_ns, busy->end_ns) - (uint64_t)busy->start_ns);
}

static int add_cover(struct collective_covers *covers, uint32_t name, uint32_t kernel, uint64_t ns)
{
	const uint32_t key[2] = {name, kernel};
	uint32_t id;
	int r = intern_add(&covers->keys, key, sizeof(key), &id);

	if (r > 0)
		r = array_append(
			&covers->items, (struct collective_cover){.name = name, .kernel = kernel});
	if (r < 0)
		return r;
	covers->items.items[id].ns += ns;
	return 0;
}

/* The first kernel that may reach beyond this moment. */
static size_t first_kernel(const struct collective_overlap *overlap, int64_t start_ns)
{
	const struct trace_view_work *works = overlap->view->works.items;
	int64_t from_ns = trace_difference_ns(start_ns, overlap->longest_ns);
	size_t first = 0, end = overlap->kernels.count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (works[overlap->kernels.items[middle]].start_ns < from_ns)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

static int add_covers(const struct collective_overlap *overlap, int64_t start_ns, int64_t end_ns,
	uint32_t name, struct intern *strings, struct collective_covers *covers)
{
	const struct trace *trace = overlap->view->trace;
	size_t looked_at = 0;
	int r = 0;

	for (size_t i = first_kernel(overlap, start_ns);
		r >= 0 && i < overlap->kernels.count && looked_at < KERNELS_MAX; i++, looked_at++) {
		const struct trace_view_work *work =
			&overlap->view->works.items[overlap->kernels.items[i]];
		int64_t from_ns = MAX(work->start_ns, start_ns);
		int64_t to_ns = MIN(work->end_ns, end_ns);
		const char *text = trace_text(trace, trace->events.items[work->row].name);
		uint32_t kernel;

		if (work->start_ns >= end_ns)
			break;
		if (to_ns <= from_ns)
			continue;
		r = intern_add(strings, text, strlen(text), &kernel);
		if (r >= 0)
			r = add_cover(covers, name, kernel, (uint64_t)to_ns - (uint64_t)from_ns);
	}
	return r < 0 ? r : 0;
}

int collective_overlap_add(const struct collective_overlap *overlap, int64_t start_ns,
	int64_t end_ns, uint32_t name, struct intern *strings, struct collective_covers *covers,
	int64_t *ret_exposed_ns)
{
	uint64_t covered_ns;

	*ret_exposed_ns = 0;
	if (end_ns <= start_ns)
		return 0;
	covered_ns = busy_before(overlap, end_ns) - busy_before(overlap, start_ns);
	*ret_exposed_ns = (int64_t)((uint64_t)end_ns - (uint64_t)start_ns - covered_ns);
	return covered_ns ? add_covers(overlap, start_ns, end_ns, name, strings, covers) : 0;
}

void collective_covers_done(struct collective_covers *covers)
{
	intern_done(&covers->keys);
	array_done(&covers->items);
}
