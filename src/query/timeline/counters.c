/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks of counters: of programs and traces, memory of devices, and power. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "query/timeline/tracks.h"

struct timeline_track *timeline_add_counter(
	struct timeline *timeline, const char *process, const char *name, uint32_t source)
{
	const struct timeline_track added = {
		.kind = TIMELINE_COUNTER,
		.source = source,
		.process_sort = TRACE_NO_NUMBER,
		.pid = TRACE_NO_NUMBER,
		.thread_sort = TRACE_NO_NUMBER,
		.tid = TRACE_NO_NUMBER,
		.trace_track = MODEL_NONE,
		.thread = MODEL_NONE,
		.process = process,
		.name = name,
	};

	if (!process || !name || array_append(&timeline->tracks, added) < 0)
		return NULL;
	return &timeline->tracks.items[timeline->tracks.count - 1];
}

int timeline_add_point(struct timeline_track *track, int64_t time_ns, double value)
{
	if (!isfinite(value))
		return 0;
	track->slices++;
	return array_append(&track->counter.points, (struct counter_point){time_ns, value});
}

/* ---- of a recording ---- */

static int add_model_counters(struct timeline *timeline)
{
	const struct model *model = timeline->model;
	const struct model_counter *previous = NULL;
	struct timeline_track *track = NULL;

	array_foreach (&model->counters, counter) {
		const struct model_process *process = &model->processes.items[counter->process];

		if (!previous || previous->process != counter->process ||
			strcmp(previous->name, counter->name) != 0) {
			track = timeline_add_counter(timeline, process->name, counter->name, 0);
			if (!track)
				return -ENOMEM;
			track->pid = process->pid;
		}
		previous = counter;
		if (timeline_add_point(track, timeline_model_time(timeline, counter->time_ns),
			    counter->value) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Power of one rail: what its intervals took, by how long they were. */
static int add_power(struct timeline *timeline, const struct model_energy_domain *domain)
{
	const struct model *model = timeline->model;
	const char *name = timeline_text(timeline, "%s power (W)", domain->name);
	struct timeline_track *track = timeline_add_counter(
		timeline, *domain->device ? domain->device : "energy", name, 0);
	int r = track ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < domain->interval_count; i++) {
		const struct model_energy_interval *interval =
			&model->energy_intervals.items[domain->first_interval + i];
		double duration_s =
			(double)(interval->end_ns - interval->start_ns) / (double)NS_PER_S;

		if (interval->gap == 0)
			r = timeline_add_point(track,
				timeline_model_time(timeline, interval->start_ns),
				interval->energy_j / duration_s);
	}
	return r;
}

/* ---- of traces ---- */

/* A value of a counter, and which counter it is. */
struct value {
	uint64_t key[2];
	int64_t time_ns;
	double value;
};

struct values {
	ARRAY_OF(struct value) items;
};

static int compare_values(const void *left, const void *right)
{
	const struct value *a = left, *b = right;

	for (int i = 0; i < 2; i++) {
		if (a->key[i] != b->key[i])
			return a->key[i] < b->key[i] ? -1 : 1;
	}
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* What a counter is called, by its key; NULL when memory ran out. */
typedef const char *name_function(
	struct timeline *timeline, const struct trace *trace, const struct value *value);

static const char *counter_name(
	struct timeline *timeline, const struct trace *trace, const struct value *value)
{
	const struct trace_counter counter = {
		.name = (uint32_t)(value->key[1] >> 32), .series = (uint32_t)value->key[1]};
	const char *name = trace_text(trace, counter.name);
	const char *series = trace_counter_series(trace, &counter);

	return timeline_text(timeline, *series ? "%s: %s" : "%s%s", name, series);
}

static const char *memory_name(
	struct timeline *timeline, const struct trace *trace, const struct value *value)
{
	if (value->key[0] == TRACE_DEVICE_CUDA)
		return timeline_text(timeline, "memory of GPU %lld", (long long)value->key[1]);
	return timeline_text(timeline, "memory");
}

/* A track for each key. */
static int add_values(
	struct timeline *timeline, uint32_t source, struct values *values, name_function *name)
{
	const struct trace *trace = timeline->sources.items[source].trace;
	const struct value *previous = NULL;
	struct timeline_track *track = NULL;

	if (values->items.count)
		qsort(values->items.items, values->items.count, sizeof(struct value),
			compare_values);
	array_foreach (&values->items, value) {
		if (!previous || previous->key[0] != value->key[0] ||
			previous->key[1] != value->key[1]) {
			track = timeline_add_counter(
				timeline, "counters", name(timeline, trace, value), source);
			if (!track)
				return -ENOMEM;
		}
		previous = value;
		if (timeline_add_point(track, value->time_ns, value->value) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_trace_counters(struct timeline *timeline, uint32_t source)
{
	const struct timeline_source *from = &timeline->sources.items[source];
	struct values values = {0};
	int r = 0;

	array_foreach (&from->trace->counters, counter) {
		if (r == 0)
			r = array_append(&values.items,
				(struct value){
					.key = {counter->track,
						(uint64_t)counter->name << 32 | counter->series},
					.time_ns = timeline_time(counter->time_ns, from->offset_ns),
					.value = counter->value,
				});
	}
	if (r == 0)
		r = add_values(timeline, source, &values, counter_name);
	array_done(&values.items);
	return r;
}

static int add_memory(struct timeline *timeline, uint32_t source)
{
	const struct timeline_source *from = &timeline->sources.items[source];
	const struct trace *trace = from->trace;
	struct values values = {0};
	int r = 0;

	array_foreach (&trace->events, event) {
		const struct trace_memory *memory;

		if (event->category != TRACE_CPU_INSTANT || event->detail == MODEL_NONE)
			continue;
		memory = &trace->memory.items[event->detail];
		if (r < 0 || memory->total_allocated == TRACE_NO_NUMBER)
			continue;
		r = array_append(&values.items,
			(struct value){
				.key = {(uint64_t)memory->device_type, (uint64_t)memory->device_id},
				.time_ns = timeline_time(event->start_ns, from->offset_ns),
				.value = (double)memory->total_allocated,
			});
	}
	if (r == 0)
		r = add_values(timeline, source, &values, memory_name);
	array_done(&values.items);
	return r;
}

int timeline_add_counters(struct timeline *timeline)
{
	int r = add_model_counters(timeline);

	array_foreach (&timeline->model->energy_domains, domain) {
		if (r == 0)
			r = add_power(timeline, domain);
	}
	for (uint32_t i = 0; r == 0 && i < timeline->sources.count; i++) {
		r = add_trace_counters(timeline, i);
		if (r == 0)
			r = add_memory(timeline, i);
	}
	if (r == 0)
		r = timeline_add_rates(timeline);
	array_foreach (&timeline->tracks, track) {
		if (r == 0 && track->kind == TIMELINE_COUNTER)
			r = counter_finish(&track->counter);
	}
	return r;
}
