/* SPDX-License-Identifier: Apache-2.0 */
/* An analysis for tests alone: see toy-analysis.h. */
#include "toy-analysis.h"

#include <errno.h>

bool toy_is_span(const struct trace_view *view, const struct trace_event *event)
{
	return trace_view_has(view, event) &&
	       trace_view_end_ns(view, event) > trace_view_start_ns(view, event);
}

static struct toy_longest_row longest_of(const struct trace_view *view, uint32_t index)
{
	const struct trace *trace = view->trace;
	const struct trace_track *track = &trace->tracks.items[index];
	struct toy_longest_row row = {.track = index};
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

	for (uint32_t i = 0; i < track->count; i++) {
		uint32_t number = trace->rows.items[track->first + i];
		const struct trace_event *event = &trace->events.items[number];
		int64_t start_ns = trace_view_start_ns(view, event);
		int64_t end_ns = trace_view_end_ns(view, event);

		if (!toy_is_span(view, event))
			continue;
		if (end_ns - start_ns > row.longest_ns) {
			row.longest_ns = end_ns - start_ns;
			row.event = number;
		}
		row.spans++;
		first_ns = MIN(first_ns, start_ns);
		last_ns = MAX(last_ns, end_ns);
	}
	row.whole_ns = row.spans ? last_ns - first_ns : 0;
	return row;
}

int toy_longest_init(struct toy_longest *longest, const struct trace_view *view)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < view->trace->tracks.count; i++) {
		struct toy_longest_row row = longest_of(view, i);

		if (row.spans)
			r = array_append(&longest->rows, row);
	}
	return r;
}

void toy_longest_done(struct toy_longest *longest)
{
	array_done(&longest->rows);
}
