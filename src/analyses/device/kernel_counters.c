/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/kernel_counters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

/* Files say anything. */
#define MOST_RANGES    32         /* around a launch */
#define MOST_STEP_ROWS (1U << 20) /* steps, each of all devices of its process */

/* Time on a device that belongs to rows: groups.items[first] … */
struct span {
	int64_t start_ns, end_ns;
	uint32_t device, first, count;
	int64_t single_ns; /* of the sweep, when it began */
};

struct edge {
	int64_t time_ns;
	uint32_t device, span;
	bool is_end;
};

/* A row while the sweep goes on. */
struct group {
	uint32_t active; /* spans that run */
	int64_t begin_ns;
	struct gpu_sums begin;
	size_t past; /* samples that were counted */
	double sums[WIRE_PM_MAX];
	int64_t weights_ns[WIRE_PM_MAX];
};

struct charging {
	struct kernel_counters *counters;
	const struct trace_view *view;
	const struct gpu_samples *samples;
	ARRAY_OF(struct span) spans;
	ARRAY_OF(uint32_t) groups; /* of spans: rows */
	ARRAY_OF(struct edge) edges;
	struct map_u64 rows; /* of a name and a device */
	struct group *states;
	/* The sweep over the spans of a device. */
	struct gpu_cursor cursor;
	size_t running;
	int64_t covered_ns; /* at the last edge */
	int64_t single_ns;  /* while one span ran, there were samples for so long */
};

static int64_t span_ns(const struct span *span)
{
	return MAX(trace_difference_ns(span->end_ns, span->start_ns), (int64_t)0);
}

/* ---- spans ---- */

static int find_row(struct charging *charging, uint32_t name, uint32_t device, uint32_t *ret_row)
{
	struct kernel_counters *counters = charging->counters;
	uint64_t key = (uint64_t)device << 32 | name, known;
	int r;

	if (map_u64_get(&charging->rows, key, &known)) {
		*ret_row = (uint32_t)known;
		return 0;
	}
	*ret_row = (uint32_t)counters->rows.count;
	r = map_u64_set(&charging->rows, key, *ret_row);
	return r < 0 ? r
		     : array_append(&counters->rows,
			       (struct kernel_counters_row){
				       .name = trace_text(charging->view->trace, name),
				       .device = device});
}

/* To the span that is being made, whose groups are the last ones. */
static int add_group(struct charging *charging, struct span *span, uint32_t name)
{
	uint32_t row;
	int r = find_row(charging, name, span->device, &row);

	for (uint32_t i = 0; r == 0 && i < span->count; i++) {
		if (charging->groups.items[span->first + i] == row)
			return 0;
	}
	r = r < 0 ? r : array_append(&charging->groups, row);
	if (r < 0)
		return r;
	span->count++;
	charging->counters->rows.items[row].count++;
	charging->counters->rows.items[row].total_ns =
		trace_add_ns(charging->counters->rows.items[row].total_ns, span_ns(span));
	return 0;
}

static bool is_step(const struct charging *charging, uint32_t name)
{
	uint64_t number;

	return trace_step_number(trace_text(charging->view->trace, name), &number);
}

/* All around the call, the innermost first. */
static int add_ranges(
	struct charging *charging, struct span *span, uint32_t call, const uint32_t *parents)
{
	const struct trace *trace = charging->view->trace;
	int r = 0;

	for (uint32_t row = call; r == 0 && row != MODEL_NONE && span->count < MOST_RANGES;
		row = parents[row]) {
		const struct trace_event *event = &trace->events.items[row];

		if ((event->category == TRACE_CPU_OP || event->category == TRACE_USER_ANNOTATION) &&
			!is_step(charging, event->name))
			r = add_group(charging, span, event->name);
	}
	return r;
}

static int add_works(struct charging *charging, bool by_range)
{
	const struct trace_view *view = charging->view;
	const uint32_t *parents = by_range ? trace_parents(view->trace, false) : NULL;
	int r = by_range && !parents ? -ENOMEM : 0;

	r = r < 0 ? r : array_reserve(&charging->spans, view->works.count);
	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];
		struct span span = {
			.start_ns = work->start_ns,
			.end_ns = work->end_ns,
			.device = view->streams.items[work->stream].device,
			.first = (uint32_t)charging->groups.count,
		};

		if (work->kind == TRACE_OTHER_KIND || work->is_wait ||
			work->end_ns < work->start_ns)
			continue;
		r = by_range
			    ? add_ranges(charging, &span, work->origin, parents)
			    : add_group(charging, &span, view->trace->events.items[work->row].name);
		/* Without a range it is still what ran besides. */
		r = r < 0 ? r : array_append(&charging->spans, span);
	}
	return r;
}

static int add_step(struct charging *charging, const struct trace_event *event, uint64_t number,
	const struct gpu_sampler *sampler)
{
	struct kernel_counters *counters = charging->counters;
	const struct trace_view *view = charging->view;
	struct span span = {
		.start_ns = trace_view_start_ns(view, event),
		.end_ns = trace_view_end_ns(view, event),
		.device = sampler->device,
		.first = (uint32_t)charging->groups.count,
		.count = 1,
	};
	int r = 0;

	if (span.end_ns <= span.start_ns || counters->rows.count >= MOST_STEP_ROWS)
		return 0;
	r = array_append(&charging->groups, (uint32_t)counters->rows.count);
	r = r < 0 ? r : array_append(&charging->spans, span);
	return r < 0 ? r
		     : array_append(&counters->rows,
			       (struct kernel_counters_row){
				       .name = trace_text(view->trace, event->name),
				       .device = sampler->device,
				       .pid = sampler->pid,
				       .step = number,
				       .count = 1,
				       .total_ns = span_ns(&span)});
}

/* The first of a process, by process and device. */
static size_t find_sampler(const struct gpu_samples *samples, int64_t pid)
{
	size_t low = 0, high = samples->samplers.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (samples->samplers.items[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int add_steps(struct charging *charging)
{
	const struct trace_view *view = charging->view;
	const struct gpu_samples *samples = charging->samples;
	uint64_t number;
	int r = 0;

	for (size_t i = 0; r == 0 && i < view->trace->events.count; i++) {
		const struct trace_event *event = &view->trace->events.items[i];
		int64_t pid = view->trace->tracks.items[event->track].pid;

		if (event->category != TRACE_USER_ANNOTATION || !trace_view_has(view, event) ||
			!trace_step_number(trace_text(view->trace, event->name), &number))
			continue;
		for (size_t k = find_sampler(samples, pid); r == 0 && k < samples->samplers.count &&
							    samples->samplers.items[k].pid == pid;
			k++)
			r = add_step(charging, event, number, &samples->samplers.items[k]);
	}
	return r;
}

/* ---- the sweep ---- */

/* What begins comes first: a row that goes on has no gap. */
static int compare_edges(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->is_end != b->is_end)
		return a->is_end ? 1 : -1;
	return a->span < b->span ? -1 : a->span > b->span;
}

/* Of the devices that have samples. */
static int make_edges(struct charging *charging)
{
	int r = array_reserve(&charging->edges, 2 * charging->spans.count);

	for (uint32_t i = 0; r == 0 && i < charging->spans.count; i++) {
		const struct span *span = &charging->spans.items[i];
		struct edge edge = {.time_ns = span->start_ns, .device = span->device, .span = i};

		if (!charging->samples->devices.items[span->device].count)
			continue;
		charging->edges.items[charging->edges.count++] = edge;
		edge.time_ns = span->end_ns;
		edge.is_end = true;
		charging->edges.items[charging->edges.count++] = edge;
	}
	if (charging->edges.count)
		sort_unless_sorted(charging->edges.items, charging->edges.count,
			sizeof(*charging->edges.items), compare_edges);
	return r;
}

static void begin_group(struct charging *charging, uint32_t row, int64_t time_ns)
{
	struct group *group = &charging->states[row];

	if (group->active++)
		return;
	group->begin_ns = time_ns;
	group->begin = gpu_cursor_sums(&charging->cursor, time_ns);
}

static void end_group(struct charging *charging, uint32_t index, int64_t time_ns)
{
	struct kernel_counters_row *row = &charging->counters->rows.items[index];
	struct group *group = &charging->states[index];
	struct gpu_sums now;
	size_t first;

	if (--group->active || time_ns == group->begin_ns)
		return;
	now = gpu_cursor_sums(&charging->cursor, time_ns);
	row->measured_ns += now.covered_ns - group->begin.covered_ns;
	for (unsigned i = 0; i < WIRE_PM_MAX; i++) {
		group->sums[i] += now.sums[i] - group->begin.sums[i];
		group->weights_ns[i] += now.weights_ns[i] - group->begin.weights_ns[i];
	}
	first = MAX(group->begin.first, group->past);
	if (now.past <= first)
		return;
	row->samples += now.past - first;
	row->samples_ns += gpu_cursor_before_ns(&charging->cursor, now.past) -
			   gpu_cursor_before_ns(&charging->cursor, first);
	group->past = now.past;
}

static void take_edge(struct charging *charging, const struct edge *edge)
{
	struct span *span = &charging->spans.items[edge->span];
	const uint32_t *groups = charging->groups.items;
	int64_t covered_ns;

	gpu_cursor_move(&charging->cursor, edge->time_ns);
	covered_ns = gpu_cursor_covered_ns(&charging->cursor, edge->time_ns);
	if (charging->running == 1)
		charging->single_ns += covered_ns - charging->covered_ns;
	charging->covered_ns = covered_ns;
	if (!edge->is_end) {
		charging->running++;
		span->single_ns = charging->single_ns;
		for (uint32_t i = 0; i < span->count; i++)
			begin_group(charging, groups[span->first + i], edge->time_ns);
		return;
	}
	charging->running--;
	for (uint32_t i = 0; i < span->count; i++) {
		charging->counters->rows.items[groups[span->first + i]].alone_ns +=
			charging->single_ns - span->single_ns;
		end_group(charging, groups[span->first + i], edge->time_ns);
	}
}

static int sweep(struct charging *charging)
{
	int r = make_edges(charging);

	if (r < 0 || !charging->edges.count)
		return r;
	charging->states =
		calloc(MAX(charging->counters->rows.count, (size_t)1), sizeof(*charging->states));
	if (!charging->states)
		return -ENOMEM;
	for (size_t i = 0; i < charging->edges.count; i++) {
		const struct edge *edge = &charging->edges.items[i];

		if (!i || edge->device != edge[-1].device) {
			gpu_cursor_init(&charging->cursor, charging->samples, edge->device);
			charging->covered_ns = charging->single_ns = 0;
		}
		take_edge(charging, edge);
	}
	return 0;
}

/* ---- rows ---- */

static int compare_rows(const void *left, const void *right)
{
	const struct kernel_counters_row *a = left, *b = right;
	int order;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	order = strcmp(a->name, b->name);
	return order ? order : a->device < b->device ? -1 : a->device > b->device;
}

static int compare_steps(const void *left, const void *right)
{
	const struct kernel_counters_row *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

static void finish(struct charging *charging, enum kernel_counters_by by)
{
	struct kernel_counters *counters = charging->counters;

	for (size_t i = 0; i < counters->rows.count; i++) {
		const struct group *group = charging->states ? &charging->states[i] : NULL;

		for (unsigned k = 0; k < WIRE_PM_MAX; k++)
			counters->rows.items[i].means[k] =
				group && group->weights_ns[k]
					? group->sums[k] / (double)group->weights_ns[k]
					: (double)NAN;
	}
	if (counters->rows.count)
		qsort(counters->rows.items, counters->rows.count, sizeof(*counters->rows.items),
			by == KERNEL_COUNTERS_BY_STEP ? compare_steps : compare_rows);
}

int kernel_counters_init(struct kernel_counters *counters, const struct trace_view *view,
	const struct gpu_samples *samples, enum kernel_counters_by by)
{
	struct charging charging = {.counters = counters, .view = view, .samples = samples};
	int r;

	*counters = (struct kernel_counters){0};
	if (!samples->count)
		return 0;
	r = by == KERNEL_COUNTERS_BY_STEP ? add_steps(&charging)
					  : add_works(&charging, by == KERNEL_COUNTERS_BY_RANGE);
	r = r < 0 ? r : sweep(&charging);
	if (r == 0)
		finish(&charging, by);
	array_done(&charging.spans);
	array_done(&charging.groups);
	array_done(&charging.edges);
	map_u64_done(&charging.rows);
	free(charging.states);
	if (r < 0)
		kernel_counters_done(counters);
	return r;
}

void kernel_counters_done(struct kernel_counters *counters)
{
	array_done(&counters->rows);
}
