/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/sync_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/charge.h"
#include "analyses/cpu/thread_history.h"
#include "analyses/device/blocking.h"

struct finding {
	struct sync_rows *rows;
	const struct trace_view *view;
	const struct model *model; /* of a recording; else NULL */
	const uint32_t *parents;
	struct thread_history history;
	struct intern keys;
	struct map_u64 works; /* row of a call → the first work that it launched, in view.works */
};

/* Hashed as bytes. */
struct row_key {
	struct charge_key frame;
	uint32_t kind, target, name, category;
};

/* The stack of the first sample of the thread that was taken in the call; MODEL_NONE: none. */
static uint32_t stack_in_call(const struct finding *finding, const struct trace_event *call)
{
	uint64_t from_ns = finding->view->trace->recorded_from_ns;
	uint32_t recorded = finding->view->trace->tracks.items[call->track].recorded;
	uint64_t at_ns = from_ns + (uint64_t)call->start_ns;
	uint64_t end_ns = from_ns + (uint64_t)trace_end_ns(call), until_ns;

	for (; recorded && at_ns < end_ns; at_ns = until_ns) {
		const struct model_sample *sample;
		uint32_t index;

		until_ns = end_ns;
		index = thread_history_find(&finding->history, recorded - 1, at_ns, &until_ns);
		if (index == MODEL_NONE)
			continue;
		sample = &finding->model->samples.items[index];
		if (sample->time_ns >= from_ns + (uint64_t)call->start_ns &&
			sample->time_ns <= end_ns)
			return sample->stack;
	}
	return MODEL_NONE;
}

static uint32_t stack_of_launch(const struct finding *finding, uint32_t work)
{
	const struct trace *trace = finding->view->trace;
	const struct trace_event *event =
		&trace->events.items[finding->view->works.items[work].row];
	const struct trace_work *detail = trace_work(trace, event);

	return finding->model->device_works.items[detail->recorded - 1].launch_stack;
}

static uint32_t stack_of(const struct finding *finding, const struct device_sync *sync)
{
	const struct trace *trace = finding->view->trace;
	uint32_t stack = MODEL_NONE;

	if (!finding->model)
		return MODEL_NONE;
	if (sync->next != MODEL_NONE)
		return stack_of_launch(finding, sync->next);
	if (sync->call != MODEL_NONE)
		stack = trace_call_stack(trace, &trace->events.items[sync->call]);
	if (stack == MODEL_NONE && sync->call != MODEL_NONE)
		stack = stack_in_call(finding, &trace->events.items[sync->call]);
	return stack;
}

/* Around the call, but not another call. */
static const struct trace_event *row_around(
	const struct finding *finding, const struct device_sync *sync)
{
	uint32_t row = sync->call;

	while (row != MODEL_NONE) {
		const struct trace_event *event = &finding->view->trace->events.items[row];

		if (event->category != TRACE_RUNTIME && event->category != TRACE_DRIVER)
			return event;
		row = finding->parents[row];
	}
	return NULL;
}

static int add_sync(struct finding *finding, const struct device_sync *sync)
{
	const struct trace_event *around = row_around(finding, sync);
	uint32_t stack = stack_of(finding, sync), frame = MODEL_NONE, index;
	struct row_key key = {
		.kind = sync->kind,
		.target = sync->target,
		.name = around ? around->name : 0,
		.category = around ? around->category : TRACE_OTHER,
	};
	int64_t time_ns = sync->end_ns - sync->start_ns;
	struct sync_row *row;
	int r;

	if (finding->model) {
		frame = charge_frame(finding->model, stack);
		key.frame = charge_key(finding->model, frame, 0);
	}
	r = intern_add(&finding->keys, &key, sizeof(key), &index);
	if (r > 0)
		r = array_append(&finding->rows->rows,
			(struct sync_row){
				.kind = (enum device_sync_kind)sync->kind,
				.target = device_syncs_target(&finding->rows->syncs, sync),
				.name = around ? trace_text(finding->view->trace, around->name)
					       : NULL,
				.category = (enum trace_category)key.category,
				.frame = frame,
				.most_ns = -1,
			});
	if (r < 0)
		return r;
	row = &finding->rows->rows.items[index];
	row->count++;
	row->unknown += !sync->is_known;
	row->time_ns = trace_add_ns(row->time_ns, time_ns);
	if (time_ns > row->most_ns)
		row->stack = stack;
	row->most_ns = MAX(row->most_ns, time_ns);
	return 0;
}

/* ---- calls that no row of a wait is of ---- */

static int find_works(struct finding *finding)
{
	const struct trace_view *view = finding->view;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < view->works.count; i++) {
		uint32_t launch = view->works.items[i].launch;

		if (launch != MODEL_NONE && !map_u64_get(&finding->works, launch, NULL))
			r = map_u64_set(&finding->works, launch, i);
	}
	return r;
}

/* A copy waits for what it launched. Of other calls their name is what is known. */
static int add_call(struct finding *finding, const struct trace_blocking_call *call)
{
	const struct trace_view *view = finding->view;
	const struct trace_event *event = &view->trace->events.items[call->row];
	uint64_t work = MODEL_NONE;
	uint32_t name = event->name;
	struct device_sync sync = {
		.start_ns = trace_view_start_ns(view, event),
		.row = call->row,
		.call = call->row,
		.waited = MODEL_NONE,
		.next = MODEL_NONE,
		.kind = call->kind == TRACE_BLOCKING_COPY ? DEVICE_SYNC_COPY : DEVICE_SYNC_CALL,
		.is_known = true,
	};
	const char *target;
	int r;

	sync.end_ns = MAX(trace_view_end_ns(view, event), sync.start_ns);
	if (sync.kind == DEVICE_SYNC_COPY && map_u64_get(&finding->works, call->row, &work))
		name = view->trace->events.items[view->works.items[work].row].name;
	target = trace_text(view->trace, name);
	r = intern_add(&finding->rows->syncs.targets, target, strlen(target), &sync.target);
	return r < 0 ? r : add_sync(finding, &sync);
}

static int add_calls(struct finding *finding, const struct trace_blocking *blocking)
{
	const struct trace *trace = finding->view->trace;
	int r = find_works(finding);

	for (size_t i = 0; r == 0 && i < blocking->calls.count; i++) {
		const struct trace_blocking_call *call = &blocking->calls.items[i];

		/* Other tools have the driver's call in the runtime's, and a row of a wait is of
		 * either. */
		if (call->kind == TRACE_BLOCKING_ALLOCATION ||
			(call->kind == TRACE_BLOCKING_WAIT && !trace->recorded))
			continue;
		if (trace_view_has(finding->view, &trace->events.items[call->row]) &&
			!device_syncs_of_call(&finding->rows->syncs, call->row))
			r = add_call(finding, call);
	}
	return r;
}

static int compare_rows(const void *left, const void *right)
{
	const struct sync_row *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->frame != b->frame)
		return a->frame < b->frame ? -1 : 1;
	if (a->target != b->target)
		return strcmp(a->target, b->target);
	return strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

static int add_all(struct sync_rows *rows, const struct trace_view *view,
	const struct trace_blocking *blocking)
{
	struct finding finding = {
		.rows = rows,
		.view = view,
		.model = view->trace->recorded,
		.parents = trace_parents(view->trace, true),
	};
	int r = finding.parents ? 0 : -ENOMEM;

	if (r == 0 && finding.model)
		r = thread_history_init(&finding.history, finding.model);
	for (size_t i = 0; r == 0 && i < rows->syncs.items.count; i++)
		r = add_sync(&finding, &rows->syncs.items.items[i]);
	r = r ?: add_calls(&finding, blocking);
	thread_history_done(&finding.history);
	intern_done(&finding.keys);
	map_u64_done(&finding.works);
	if (r == 0 && rows->rows.count)
		qsort(rows->rows.items, rows->rows.count, sizeof(*rows->rows.items), compare_rows);
	return r;
}

int sync_rows_init(struct sync_rows *rows, const struct trace_view *view)
{
	_cleanup_trace_blocking_ struct trace_blocking blocking = {0};
	int r;

	*rows = (struct sync_rows){0};
	r = device_syncs_init(&rows->syncs, view);
	/* Other tools' traces without rows of waits have them in too many ways to add up. */
	if (r == 0 && (view->trace->recorded || rows->syncs.items.count))
		r = trace_blocking_init(&blocking, view->trace);
	if (r == 0 && (rows->syncs.items.count || blocking.calls.count))
		r = add_all(rows, view, &blocking);
	if (r < 0)
		sync_rows_done(rows);
	return r;
}

void sync_rows_done(struct sync_rows *rows)
{
	device_syncs_done(&rows->syncs);
	array_done(&rows->rows);
}
