/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/trace_launches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/trace_order.h"

/* The four of cuda_kernel_launch_stats(), and MTIA's. */
static bool hta_is_launch(const char *name)
{
	static const char *const names[] = {"cudaLaunchKernel", "cudaLaunchKernelExC",
		"cudaMemcpyAsync", "cudaMemsetAsync",
		"runFunction - job_prep_and_submit_for_execution"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* ---- rows ---- */

/* Work is busy on its stream up to here. */
struct busy {
	int64_t until_ns;
};

/* By row of a call: its row in the result, + 1. */
static int add_work(struct trace_launches *launches, uint32_t *rows, struct busy *busy,
	const struct trace_view *view, const struct trace_view_work *work)
{
	const struct trace_event *call = &view->trace->events.items[work->launch];
	int64_t call_start_ns = trace_view_start_ns(view, call);
	int64_t call_end_ns = trace_view_end_ns(view, call);
	struct trace_launch launch = {
		.correlation = call->correlation,
		.row = work->launch,
		.works = 1,
		.call_ns = call_end_ns - call_start_ns,
		.work_ns = work->end_ns - work->start_ns,
		.delay_ns = MAX(work->start_ns - call_end_ns, (int64_t)0),
		.latency_ns = -1,
	};
	int r;

	if (rows[work->launch] && !view->options.hta_compatible) {
		struct trace_launch *known = &launches->rows.items[rows[work->launch] - 1];

		known->works++;
		known->work_ns += launch.work_ns;
		return 0;
	}
	if (busy->until_ns < call_start_ns && work->start_ns >= call_start_ns)
		launch.latency_ns = work->start_ns - call_start_ns;
	r = array_append(&launches->rows, launch);
	rows[work->launch] = (uint32_t)launches->rows.count;
	return r;
}

static bool wanted(const struct trace_view *view, const struct trace_view_work *work)
{
	if (work->launch == MODEL_NONE)
		return false;
	return !view->options.hta_compatible ||
	       hta_is_launch(trace_text(view->trace, view->trace->events.items[work->launch].name));
}

static int add_works(struct trace_launches *launches, const struct trace_view *view)
{
	_cleanup_free_ uint32_t *rows = calloc(view->trace->events.count + 1, sizeof(*rows));
	_cleanup_free_ struct busy *busy = calloc(view->streams.count + 1, sizeof(*busy));
	int r = rows && busy ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < view->streams.count; i++)
		busy[i].until_ns = INT64_MIN;
	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];

		if (wanted(view, work))
			r = add_work(launches, rows, &busy[work->stream], view, work);
		busy[work->stream].until_ns = MAX(busy[work->stream].until_ns, work->end_ns);
	}
	return r;
}

/* By the call's row; HTA's work of one call stays in its order. */
static int sort_rows(struct trace_launches *launches)
{
	size_t count = launches->rows.count;
	_cleanup_free_ struct trace_launch *unsorted = malloc((count + 1) * sizeof(*unsorted));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));
	_cleanup_free_ int64_t *keys = malloc((count + 1) * sizeof(*keys));
	int r = unsorted && order && keys ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++) {
		unsorted[i] = launches->rows.items[i];
		keys[i] = unsorted[i].row;
	}
	r = r ?: trace_order_stable(keys, order, count);
	for (size_t i = 0; r == 0 && i < count; i++)
		launches->rows.items[i] = unsorted[order[i]];
	return r;
}

/* ---- sums ---- */

static void count_launch(struct trace_launch_call *call, const struct trace_launch *launch)
{
	call->launches++;
	call->works += launch->works;
	call->short_works += launch->work_ns < launch->call_ns;
	call->long_calls += launch->call_ns > TRACE_LAUNCH_LONG_CALL_NS;
	call->long_delays += launch->delay_ns > TRACE_LAUNCH_LONG_DELAY_NS;
}

static int find_calls(struct trace_launches *launches, const struct trace_view *view)
{
	_cleanup_free_ uint32_t *known =
		calloc(view->trace->strings.entries.count + 1, sizeof(*known));
	int r = known ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < launches->rows.count; i++) {
		struct trace_launch *launch = &launches->rows.items[i];
		uint32_t name = view->trace->events.items[launch->row].name;

		if (!known[name]) {
			r = array_append(
				&launches->calls, (struct trace_launch_call){.name = name});
			known[name] = (uint32_t)launches->calls.count;
		}
		if (r < 0)
			break;
		launch->call = known[name] - 1;
		count_launch(&launches->calls.items[launch->call], launch);
	}
	return r;
}

static int64_t figure_of(const struct trace_launch *launch, enum trace_launch_figure figure)
{
	const int64_t figures[TRACE_LAUNCH_FIGURE_MAX] = {
		[TRACE_LAUNCH_CALL] = launch->call_ns,
		[TRACE_LAUNCH_WORK] = launch->work_ns,
		[TRACE_LAUNCH_DELAY] = launch->delay_ns,
		[TRACE_LAUNCH_LATENCY] = launch->latency_ns,
	};

	return figures[figure];
}

int trace_launches_describe(const struct trace_launches *launches, uint32_t call,
	enum trace_launch_figure figure, struct trace_describe *ret_describe)
{
	_cleanup_free_ int64_t *values = malloc((launches->rows.count + 1) * sizeof(*values));
	size_t found = 0;

	if (!values)
		return -ENOMEM;
	array_foreach (&launches->rows, launch) {
		if (launch->call != call)
			continue;
		values[found] = figure_of(launch, figure);
		/* The stream was busy: there is no latency. */
		found += figure != TRACE_LAUNCH_LATENCY || values[found] >= 0;
	}
	return trace_describe_ns(ret_describe, values, found);
}

int trace_launches_init(struct trace_launches *launches, const struct trace_view *view)
{
	int r;

	*launches = (struct trace_launches){.works_without_launch = view->works_without_launch};
	r = add_works(launches, view);
	r = r ?: sort_rows(launches);
	r = r ?: find_calls(launches, view);
	if (r < 0)
		trace_launches_done(launches);
	return r;
}

void trace_launches_done(struct trace_launches *launches)
{
	array_done(&launches->rows);
	array_done(&launches->calls);
}
