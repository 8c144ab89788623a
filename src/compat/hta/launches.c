/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/hta/internal.h"

#include <string.h>

/* The four of cuda_kernel_launch_stats(), and MTIA's. */
static bool is_launch(const char *name)
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

int hta_launches_init(struct launches *launches, const struct trace_view *view)
{
	int r = 0;

	*launches = (struct launches){0};
	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];
		const struct trace_event *call;

		if (work->launch == MODEL_NONE)
			continue;
		call = &view->trace->events.items[work->launch];
		if (is_launch(trace_text(view->trace, call->name)))
			r = array_append(&launches->rows, launch_of(view, work));
	}
	if (r == 0)
		r = launches_finish(launches, view);
	if (r < 0)
		launches_done(launches);
	return r;
}
