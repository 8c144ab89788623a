/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/startup.h"

#include <errno.h>
#include <stdlib.h>

/* The rows of a thread that are open, and since when the innermost has the time. */
struct sweep {
	struct startup *startup;
	const struct trace_view *view;
	uint32_t index;
	uint32_t *open;
	int64_t *own_ns; /* of each */
	size_t depth;
	int64_t at_ns, until_ns;
};

static void pass_time(struct sweep *sweep, int64_t time_ns)
{
	time_ns = MIN(time_ns, sweep->until_ns);
	if (sweep->depth && time_ns > sweep->at_ns)
		sweep->own_ns[sweep->depth - 1] = trace_add_ns(sweep->own_ns[sweep->depth - 1],
			trace_difference_ns(time_ns, sweep->at_ns));
	sweep->at_ns = MAX(sweep->at_ns, time_ns);
}

static void close_row(struct sweep *sweep)
{
	struct startup *startup = sweep->startup;
	int64_t own_ns = sweep->own_ns[--sweep->depth];

	if (own_ns <= startup->row_ns)
		return;
	startup->view = sweep->index;
	startup->row = sweep->open[sweep->depth];
	startup->row_ns = own_ns;
}

/* Closes the rows that end up to a moment. */
static void close_rows(struct sweep *sweep, int64_t time_ns)
{
	const struct trace_event *events = sweep->view->trace->events.items;

	while (sweep->depth) {
		int64_t end_ns =
			trace_view_end_ns(sweep->view, &events[sweep->open[sweep->depth - 1]]);

		if (end_ns > time_ns)
			break;
		pass_time(sweep, end_ns);
		close_row(sweep);
	}
	pass_time(sweep, time_ns);
}

static void find_row(struct sweep *sweep, const struct trace_track *track)
{
	const struct trace *trace = sweep->view->trace;

	for (uint32_t i = 0; i < track->count; i++) {
		uint32_t row = trace->rows.items[track->first + i];
		const struct trace_event *event = &trace->events.items[row];
		int64_t start_ns = trace_view_start_ns(sweep->view, event);

		if (start_ns >= sweep->until_ns)
			break;
		if (!trace_view_is_of_thread(sweep->view, event))
			continue;
		close_rows(sweep, start_ns);
		sweep->open[sweep->depth] = row;
		sweep->own_ns[sweep->depth++] = 0;
	}
	close_rows(sweep, INT64_MAX);
}

/* Of the thread that launched the first work. */
static int find_launching_row(struct sweep *sweep, uint32_t launch)
{
	const struct trace *trace = sweep->view->trace;
	const struct trace_track *track = &trace->tracks.items[trace->events.items[launch].track];
	_cleanup_free_ uint32_t *open = malloc(((size_t)track->count + 1) * sizeof(*open));
	_cleanup_free_ int64_t *own_ns = malloc(((size_t)track->count + 1) * sizeof(*own_ns));

	if (!open || !own_ns)
		return -ENOMEM;
	sweep->open = open;
	sweep->own_ns = own_ns;
	find_row(sweep, track);
	return 0;
}

/* The begin of the first row of any thread; INT64_MAX: there is none. */
static int64_t begin_of(const struct trace_view *view)
{
	int64_t begin_ns = INT64_MAX;

	array_foreach (&view->trace->events, event) {
		if (trace_view_is_of_thread(view, event))
			begin_ns = MIN(begin_ns, trace_view_start_ns(view, event));
	}
	return begin_ns;
}

int startup_add(struct startup *startup, const struct trace_view *view, uint32_t index)
{
	struct sweep sweep = {.startup = startup, .view = view, .index = index, .at_ns = INT64_MIN};
	_cleanup_free_ bool *has_begun = calloc(view->devices.count + 1, sizeof(*has_begun));
	int64_t begin_ns = view->works.count ? begin_of(view) : INT64_MAX;
	uint32_t launch;

	if (!has_begun)
		return -ENOMEM;
	array_foreach (&view->works, work) {
		uint32_t device = view->streams.items[work->stream].device;

		if (!has_begun[device] && work->start_ns > begin_ns)
			startup->idle_ns = trace_add_ns(
				startup->idle_ns, trace_difference_ns(work->start_ns, begin_ns));
		has_begun[device] = true;
	}
	if (begin_ns == INT64_MAX)
		return 0;
	launch = view->works.items[0].launch;
	sweep.until_ns = view->works.items[0].start_ns;
	return launch == MODEL_NONE ? 0 : find_launching_row(&sweep, launch);
}
