/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/counter_use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/statistics.h"
#include "model/trace_capture.h"

struct counting {
	struct counter_use *use;
	ARRAY_OF(struct spread_values) values; /* the numbers of each row */
};

static int add_row(struct counting *counting, struct counter_row row)
{
	int r = array_append(&counting->use->rows, row);

	return r < 0 ? r : array_append(&counting->values, (struct spread_values){0});
}

static int add_value(struct counting *counting, size_t index, int64_t time_ns, double value)
{
	struct counter_row *row = &counting->use->rows.items[index];
	uint64_t before = row->count - row->not_numbers;
	struct spread_values *values = counting->values.items; /* a row was added before */

	row->count++;
	if (!isfinite(value)) {
		row->not_numbers++;
		return 0;
	}
	row->minimum = before ? MIN(row->minimum, value) : value;
	row->maximum = before ? MAX(row->maximum, value) : value;
	row->mean += (value - row->mean) / (double)(before + 1);
	if (!before || time_ns >= row->last_ns) {
		row->last = value;
		row->last_ns = time_ns;
	}
	return values ? array_append(&values[index].items, value) : 0;
}

static void finish(struct counting *counting, int status)
{
	for (size_t i = 0; i < counting->values.count; i++) {
		if (status == 0)
			counting->use->rows.items[i].p95 =
				spread_of(&counting->values.items[i]).p95;
		array_done(&counting->values.items[i].items);
	}
	array_done(&counting->values);
}

/* Values of one counter lie together, in the order of time; equal names are equal pointers. */
static int add_recorded(struct counting *counting, const struct model *model)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->counters.count; i++) {
		const struct model_counter *counter = &model->counters.items[i];
		const struct model_process *process = &model->processes.items[counter->process];

		if (!i || counter->name != counter[-1].name ||
			counter->process != counter[-1].process)
			r = add_row(counting, (struct counter_row){
						      .name = counter->name,
						      .series = "",
						      .pid = process->pid,
						      .rank = process->rank,
					      });
		if (r == 0)
			r = add_value(counting, counting->values.count - 1,
				(int64_t)counter->time_ns, counter->value);
	}
	return r;
}

/* ---- of a trace, whose file has any order ---- */

struct key {
	int64_t pid;
	uint32_t name, series, pid_text, zero;
};

static int add_of_trace(struct counting *counting, const struct trace_view *view, bool has_rank)
{
	const struct trace *trace = view->trace;
	size_t first = counting->values.count;
	struct intern keys = {0};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < trace->counters.count; i++) {
		const struct trace_counter *counter = &trace->counters.items[i];
		const struct trace_track *track = &trace->tracks.items[counter->track];
		const struct key key = {
			track->pid, counter->name, counter->series, track->pid_text, 0};
		bool has_pid = track->pid > 0 && track->pid <= UINT32_MAX;
		uint32_t id;

		r = intern_add(&keys, &key, sizeof(key), &id);
		if (r > 0)
			r = add_row(
				counting, (struct counter_row){
						  .name = trace_text(trace, counter->name),
						  .series = trace_counter_series(trace, counter),
						  .pid = has_pid ? (uint32_t)track->pid : 0,
						  .rank = has_rank ? view->rank : MODEL_NONE,
					  });
		if (r >= 0)
			r = add_value(counting, first + id, counter->time_ns, counter->value);
	}
	intern_done(&keys);
	return MIN(r, 0);
}

static int compare_rows(const void *left, const void *right)
{
	const struct counter_row *a = left, *b = right;
	int order;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	order = strcmp(a->name, b->name);
	return order ? order : strcmp(a->series, b->series);
}

static int add_traces(struct counting *counting, const struct trace_view *views, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_of_trace(
			counting, &views[i], count > 1 || views[i].trace->rank != MODEL_NONE);
	return r;
}

int counter_use_init(struct counter_use *use, const struct model *model,
	const struct trace_view *views, size_t count)
{
	struct counting counting = {.use = use};
	bool is_foreign = model_is_foreign(model);
	int r;

	*use = (struct counter_use){0};
	r = is_foreign ? add_traces(&counting, views, count) : add_recorded(&counting, model);
	finish(&counting, r);
	if (is_foreign && r == 0 && use->rows.count)
		qsort(use->rows.items, use->rows.count, sizeof(*use->rows.items), compare_rows);
	if (r < 0)
		counter_use_done(use);
	return r;
}

void counter_use_done(struct counter_use *use)
{
	array_done(&use->rows);
}
