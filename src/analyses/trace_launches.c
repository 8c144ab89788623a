/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/trace_launches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* By the call's row; the work of one call by its order. */
static int compare_launches(const void *left, const void *right)
{
	const struct trace_launch *a = left, *b = right;

	return a->row < b->row ? -1 : a->row > b->row;
}

/* ---- sums ---- */

static int describe_call(struct trace_launches *launches, struct trace_launch_call *call,
	const uint32_t *members, size_t count, int64_t *values)
{
	struct {
		struct trace_describe *to;
		size_t offset;
	} figures[] = {
		{&call->call, offsetof(struct trace_launch, call_ns)},
		{&call->work, offsetof(struct trace_launch, work_ns)},
		{&call->delay, offsetof(struct trace_launch, delay_ns)},
		{&call->latency, offsetof(struct trace_launch, latency_ns)},
	};
	int r = 0;

	for (size_t figure = 0; r == 0 && figure < ARRAY_SIZE(figures); figure++) {
		size_t found = 0;

		for (size_t i = 0; i < count; i++) {
			const char *launch = (const char *)&launches->rows.items[members[i]];
			int64_t value;

			memcpy(&value, launch + figures[figure].offset, sizeof(value));
			if (value >= 0)
				values[found++] = value;
		}
		r = trace_describe_ns(figures[figure].to, values, found);
	}
	return r;
}

static void count_launch(struct trace_launch_call *call, const struct trace_launch *launch)
{
	call->launches++;
	call->works += launch->works;
	call->short_works += launch->work_ns < launch->call_ns;
	call->long_calls += launch->call_ns > TRACE_LAUNCH_LONG_CALL_NS;
	call->long_delays += launch->delay_ns > TRACE_LAUNCH_LONG_DELAY_NS;
}

static int compare_calls(const void *left, const void *right)
{
	const struct trace_launch_call *a = left, *b = right;

	if (a->launches != b->launches)
		return a->launches > b->launches ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* There are few names of calls: `call_of` has that of each row. */
static int find_calls(
	struct trace_launches *launches, const struct trace_view *view, uint32_t *call_of)
{
	_cleanup_free_ uint32_t *known =
		calloc(view->trace->strings.entries.count + 1, sizeof(*known));
	int r = known ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < launches->rows.count; i++) {
		const struct trace_launch *launch = &launches->rows.items[i];
		uint32_t name = view->trace->events.items[launch->row].name;

		if (!known[name]) {
			r = array_append(
				&launches->calls, (struct trace_launch_call){.name = name});
			known[name] = (uint32_t)launches->calls.count;
		}
		if (r < 0)
			break;
		call_of[i] = known[name] - 1;
		count_launch(&launches->calls.items[call_of[i]], launch);
	}
	return r;
}

static int add_sums(struct trace_launches *launches, const struct trace_view *view)
{
	size_t count = launches->rows.count;
	_cleanup_free_ uint32_t *call_of = malloc((count + 1) * sizeof(*call_of));
	_cleanup_free_ uint32_t *members = malloc((count + 1) * sizeof(*members));
	_cleanup_free_ int64_t *values = malloc((count + 1) * sizeof(*values));
	int r = call_of && members && values ? find_calls(launches, view, call_of) : -ENOMEM;

	for (uint32_t call = 0; r == 0 && call < launches->calls.count; call++) {
		size_t found = 0;

		for (uint32_t i = 0; i < count; i++) {
			if (call_of[i] == call)
				members[found++] = i;
		}
		r = describe_call(launches, &launches->calls.items[call], members, found, values);
	}
	if (r == 0 && launches->calls.count)
		qsort(launches->calls.items, launches->calls.count, sizeof(*launches->calls.items),
			compare_calls);
	return r;
}

int trace_launches_init(struct trace_launches *launches, const struct trace_view *view)
{
	int r;

	*launches = (struct trace_launches){.works_without_launch = view->works_without_launch};
	r = add_works(launches, view);
	if (r == 0 && launches->rows.count)
		qsort(launches->rows.items, launches->rows.count, sizeof(*launches->rows.items),
			compare_launches);
	r = r ?: add_sums(launches, view);
	if (r < 0)
		trace_launches_done(launches);
	return r;
}

void trace_launches_done(struct trace_launches *launches)
{
	array_done(&launches->rows);
	array_done(&launches->calls);
}
