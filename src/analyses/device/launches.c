/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/launches.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/trace_order.h"

/* ---- rows ---- */

/* Work is busy on its stream up to here. */
struct busy {
	int64_t until_ns;
};

static void find_launch_times(
	struct launch *launch, const struct trace_view *view, const struct trace_view_work *work)
{
	const struct trace_event *event = &view->trace->events.items[work->row];
	const struct trace_work *detail = trace_work(view->trace, event);
	const struct model_device_work *recorded =
		detail ? trace_recorded_work(view->trace, detail) : NULL;

	launch->submit_ns = launch->queue_ns = -1;
	if (!recorded || !recorded->submit_ns)
		return;
	launch->queue_ns = MAX((int64_t)(recorded->start_ns - recorded->submit_ns), (int64_t)0);
	if (recorded->queued_ns)
		launch->submit_ns =
			MAX((int64_t)(recorded->submit_ns - recorded->queued_ns), (int64_t)0);
}

struct launch launch_of(const struct trace_view *view, const struct trace_view_work *work)
{
	const struct trace_event *call = &view->trace->events.items[work->launch];
	int64_t end_ns = trace_view_end_ns(view, call);

	struct launch launch = {
		.correlation = call->correlation,
		.row = work->launch,
		.works = 1,
		.call_ns = end_ns - trace_view_start_ns(view, call),
		.work_ns = work->end_ns - work->start_ns,
		.delay_ns = MAX(work->start_ns - end_ns, (int64_t)0),
		.latency_ns = -1,
	};

	find_launch_times(&launch, view, work);
	return launch;
}

/* By row of a call: its row in the result, + 1. */
static int add_work(struct launches *launches, uint32_t *rows, const struct busy *busy,
	const struct trace_view *view, const struct trace_view_work *work)
{
	int64_t call_ns = trace_view_start_ns(view, &view->trace->events.items[work->launch]);
	struct launch launch = launch_of(view, work);

	if (rows[work->launch]) {
		struct launch *known = &launches->rows.items[rows[work->launch] - 1];

		known->works++;
		known->work_ns += launch.work_ns;
		return 0;
	}
	if (busy->until_ns <= call_ns && work->start_ns >= call_ns)
		launch.latency_ns = work->start_ns - call_ns;
	rows[work->launch] = (uint32_t)launches->rows.count + 1;
	return array_append(&launches->rows, launch);
}

static int add_works(struct launches *launches, const struct trace_view *view)
{
	_cleanup_free_ uint32_t *rows = calloc(view->trace->events.count + 1, sizeof(*rows));
	_cleanup_free_ struct busy *busy = calloc(view->streams.count + 1, sizeof(*busy));
	int r = rows && busy ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < view->streams.count; i++)
		busy[i].until_ns = INT64_MIN;
	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];

		if (work->launch != MODEL_NONE)
			r = add_work(launches, rows, &busy[work->stream], view, work);
		busy[work->stream].until_ns = MAX(busy[work->stream].until_ns, work->end_ns);
	}
	return r;
}

static int64_t row_of(const void *launch)
{
	return ((const struct launch *)launch)->row;
}

/* ---- sums ---- */

static void count_launch(struct launch_call *call, const struct launch *launch)
{
	call->launches++;
	call->works += launch->works;
	call->short_works += launch->work_ns < launch->call_ns;
	call->long_calls += launch->call_ns > LAUNCH_LONG_CALL_NS;
	call->long_delays += launch->delay_ns > LAUNCH_LONG_DELAY_NS;
}

static int find_calls(struct launches *launches, const struct trace_view *view)
{
	_cleanup_free_ uint32_t *known =
		calloc(view->trace->strings.entries.count + 1, sizeof(*known));
	int r = known ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < launches->rows.count; i++) {
		struct launch *launch = &launches->rows.items[i];
		uint32_t name = view->trace->events.items[launch->row].name;

		if (!known[name]) {
			r = array_append(&launches->calls, (struct launch_call){.name = name});
			known[name] = (uint32_t)launches->calls.count;
		}
		if (r < 0)
			break;
		launch->call = known[name] - 1;
		count_launch(&launches->calls.items[launch->call], launch);
	}
	return r;
}

static int64_t figure_of(const struct launch *launch, enum launch_figure figure)
{
	const int64_t figures[LAUNCH_FIGURE_MAX] = {
		[LAUNCH_CALL] = launch->call_ns,
		[LAUNCH_WORK] = launch->work_ns,
		[LAUNCH_DELAY] = launch->delay_ns,
		[LAUNCH_LATENCY] = launch->latency_ns,
		[LAUNCH_SUBMIT] = launch->submit_ns,
		[LAUNCH_QUEUE] = launch->queue_ns,
	};

	return figures[figure];
}

int launches_describe(const struct launches *launches, uint32_t call, enum launch_figure figure,
	struct trace_describe *ret_describe)
{
	_cleanup_free_ int64_t *values = malloc((launches->rows.count + 1) * sizeof(*values));
	size_t found = 0;

	if (!values)
		return -ENOMEM;
	array_foreach (&launches->rows, launch) {
		if (launch->call != call)
			continue;
		values[found] = figure_of(launch, figure);
		/* -1: this launch has no such figure. The others are not negative. */
		found += figure < LAUNCH_LATENCY || values[found] >= 0;
	}
	return trace_describe_ns(ret_describe, values, found);
}

int launches_finish(struct launches *launches, const struct trace_view *view)
{
	/* By the call's row; work of one call stays in its order. */
	int r = trace_order_items(launches->rows.items, launches->rows.count,
		sizeof(*launches->rows.items), row_of, trace_order_stable);

	return r < 0 ? r : find_calls(launches, view);
}

int launches_init(struct launches *launches, const struct trace_view *view)
{
	int r;

	*launches = (struct launches){0};
	r = add_works(launches, view);
	if (r == 0)
		r = launches_finish(launches, view);
	if (r < 0)
		launches_done(launches);
	return r;
}

void launches_done(struct launches *launches)
{
	array_done(&launches->rows);
	array_done(&launches->calls);
}
