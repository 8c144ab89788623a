/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/trace_kernels.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Name and kind → row, + 1; 0: none. */
struct finder {
	uint32_t *rows;
};

static int find_row(struct trace_kernels *kernels, struct finder *finder, uint32_t name,
	enum trace_kind kind, struct trace_kernel **ret_row)
{
	uint32_t *known = &finder->rows[(size_t)name * TRACE_KIND_MAX + kind];
	int r = 0;

	if (!*known) {
		r = array_append(&kernels->rows, (struct trace_kernel){
							 .name = name,
							 .number = (uint32_t)kernels->rows.count,
							 .kind = kind,
							 .least_ns = INT64_MAX,
							 .most_ns = INT64_MIN,
						 });
		*known = (uint32_t)kernels->rows.count;
	}
	if (r == 0)
		*ret_row = &kernels->rows.items[*known - 1];
	return r;
}

/* A running mean and, until the end, the sum of squares of what is apart from it (Welford). */
static int add_duration(
	struct trace_kernels *kernels, struct trace_kernel *row, int64_t duration_ns)
{
	double apart = (double)duration_ns - row->mean_ns;

	row->count++;
	row->total_ns += duration_ns;
	row->least_ns = MIN(row->least_ns, duration_ns);
	row->most_ns = MAX(row->most_ns, duration_ns);
	row->mean_ns += apart / (double)row->count;
	row->deviation_ns += apart * ((double)duration_ns - row->mean_ns);
	return medians_add(&kernels->durations, row->number, duration_ns);
}

/* Not by string, which is another in another file of the same rows. */
static int compare_rows(const void *left, const void *right, void *trace)
{
	const struct trace_kernel *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return strcmp(trace_text(trace, a->name), trace_text(trace, b->name));
}

static void finish(struct trace_kernels *kernels, const struct trace *trace)
{
	medians_finish(&kernels->durations);
	array_foreach (&kernels->rows, row) {
		row->median_ns = medians_of(&kernels->durations, row->number);
		row->mean_ns = (double)row->total_ns / (double)row->count;
		row->deviation_ns =
			row->count > 1 ? sqrt(row->deviation_ns / (double)(row->count - 1)) : 0;
	}
	if (kernels->rows.count)
		qsort_r(kernels->rows.items, kernels->rows.count, sizeof(*kernels->rows.items),
			compare_rows, (void *)trace);
}

static int begin(
	struct trace_kernels *kernels, struct finder *finder, const struct trace_view *view)
{
	*kernels = (struct trace_kernels){0};
	finder->rows = calloc(
		(view->trace->strings.entries.count + 1) * TRACE_KIND_MAX, sizeof(*finder->rows));
	return finder->rows ? 0 : -ENOMEM;
}

static int end(
	struct trace_kernels *kernels, struct finder *finder, const struct trace *trace, int r)
{
	free(finder->rows);
	if (r < 0)
		trace_kernels_done(kernels);
	else
		finish(kernels, trace);
	return r;
}

int trace_kernels_init(struct trace_kernels *kernels, const struct trace_view *view)
{
	struct finder finder;
	int r = begin(kernels, &finder, view);

	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];
		uint32_t name = view->trace->events.items[work->row].name;
		struct trace_kernel *row = NULL;

		if (work->kind == TRACE_OTHER_KIND)
			continue;
		r = find_row(kernels, &finder, name, (enum trace_kind)work->kind, &row);
		if (!row)
			break;
		if (!row->count)
			row->evidence = (enum communication_evidence)work->communication;
		r = add_duration(kernels, row, work->end_ns - work->start_ns);
	}
	return end(kernels, &finder, view->trace, r);
}

int trace_annotations_init(
	struct trace_kernels *annotations, const struct trace_view *view, bool of_device)
{
	enum trace_category wanted = of_device ? TRACE_GPU_ANNOTATION : TRACE_USER_ANNOTATION;
	struct finder finder;
	struct trace_kernel *row;
	int r = begin(annotations, &finder, view);

	for (size_t i = 0; r == 0 && i < view->trace->events.count; i++) {
		const struct trace_event *event = &view->trace->events.items[i];

		if (event->category != wanted || event->duration_ns == TRACE_NO_DURATION ||
			!trace_view_has(view, event))
			continue;
		r = find_row(annotations, &finder, event->name, TRACE_OTHER_KIND, &row);
		if (r == 0)
			r = add_duration(annotations, row,
				trace_view_end_ns(view, event) - trace_view_start_ns(view, event));
	}
	return end(annotations, &finder, view->trace, r);
}

void trace_kernels_done(struct trace_kernels *kernels)
{
	array_done(&kernels->rows);
	medians_done(&kernels->durations);
}
