/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/hta/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool hta_queue_is_launch(const char *name)
{
	static const char *const names[] = {"cudaLaunchKernel", "cudaLaunchKernelExC",
		"cuLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync", "cudaMemsetAsync",
		"runFunction - job_prep_and_submit_for_execution", "hipLaunchKernel",
		"hipExtModuleLaunchKernel", "hipMemsetAsync", "hipMemcpyAsync",
		"hipMemcpyWithStream"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* By row: the work that it launched, + 1; the last one. */
static uint32_t *index_works(const struct trace_view *view)
{
	uint32_t *works = calloc(view->trace->events.count + 1, sizeof(*works));

	for (uint32_t i = 0; works && i < view->works.count; i++) {
		uint32_t launch = view->works.items[i].launch;

		if (launch != MODEL_NONE)
			works[launch] = i + 1;
	}
	return works;
}

/* Calls, then work, each in the file's order: as HTA has them before it sorts. */
static int find_changes(struct queue_changes *changes, const struct trace_view *view)
{
	_cleanup_free_ uint32_t *works = index_works(view);
	const struct trace_event *events = view->trace->events.items;
	int r = works ? 0 : -ENOMEM;

	for (uint32_t row = 0; r == 0 && row < view->trace->events.count; row++) {
		if (!works[row])
			continue;
		if (hta_queue_is_launch(trace_text(view->trace, events[row].name)))
			r = queue_add_change(changes, trace_view_start_ns(view, &events[row]),
				view->works.items[works[row] - 1].stream, 1);
		else
			works[row] = 0;
	}
	for (uint32_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];

		if (work->launch != MODEL_NONE && works[work->launch])
			r = queue_add_change(changes, work->start_ns, work->stream, -1);
	}
	return r;
}

int hta_queue_init(struct queue *queue, const struct trace_view *view)
{
	struct queue_changes changes = {0};
	int r = find_changes(&changes, view);

	*queue = (struct queue){0};
	if (r == 0)
		r = queue_finish(queue, view, &changes, hta_order);
	array_done(&changes.items);
	if (r < 0)
		queue_done(queue);
	return r;
}
