/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/hta/internal.h"

#include <string.h>

bool hta_is_collective(const struct trace_view *view, const struct trace_view_work *work)
{
	const struct trace_event *event = &view->trace->events.items[work->row];

	return strncmp(trace_text(view->trace, event->name), "ncclKernel", strlen("ncclKernel")) ==
		       0 &&
	       view->streams.items[work->stream].number > 0;
}
