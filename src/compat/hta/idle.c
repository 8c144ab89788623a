/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/hta/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/device/idle_limits.h"

/*
 * The row that HTA takes for a launch: of work whose correlation no call has, the first row of the
 * file. Work without a correlation has none.
 */
static const struct trace_event *launch_row(
	const struct trace_view *view, const struct trace_view_work *work)
{
	const struct trace_event *first = view->trace->events.items;

	if (work->launch != MODEL_NONE)
		return &view->trace->events.items[work->launch];
	if (!view->trace->events.items[work->row].correlation)
		return NULL;
	return first->file_index == 0 && trace_view_has(view, first) ? first : NULL;
}

static enum device_idle_cause cause_of(
	const struct trace_view *view, const struct trace_view_work *work, int64_t previous_end_ns)
{
	const struct trace_event *launch = launch_row(view, work);

	if (launch && trace_view_start_ns(view, launch) > previous_end_ns)
		return DEVICE_IDLE_HOST;
	return work->start_ns - previous_end_ns < IDLE_KERNEL_WAIT_NS ? DEVICE_IDLE_KERNEL
								      : DEVICE_IDLE_OTHER;
}

/* `works`: indices of one stream's, in the file's order. */
static int add_stream(struct device_idle *idle, const struct trace_view *view, uint32_t place,
	const uint32_t *works, size_t count)
{
	_cleanup_free_ int64_t *starts = malloc((count + 1) * sizeof(*starts));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));
	int r = starts && order ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++)
		starts[i] = view->works.items[works[i]].start_ns;
	r = r ?: hta_order(starts, order, count);
	for (size_t i = 1; r == 0 && i < count; i++) {
		uint32_t next = works[order[i]];
		const struct trace_view_work *work = &view->works.items[next];
		int64_t end_ns = view->works.items[works[order[i - 1]]].end_ns;

		r = array_append(&idle->gaps, (struct device_idle_gap){
						      .start_ns = end_ns,
						      .end_ns = work->start_ns,
						      .place = place,
						      .next = next,
						      .call = MODEL_NONE,
						      .sample = MODEL_NONE,
						      .stack = MODEL_NONE,
						      .cause = cause_of(view, work, end_ns),
					      });
	}
	/* Before the first work is a gap of no length, and no cause. */
	idle->places.items[place].is_listed[DEVICE_IDLE_OTHER] = true;
	return r;
}

static int find_gaps(struct device_idle *idle, const struct trace_view *view)
{
	_cleanup_free_ uint32_t *works = malloc((view->works.count + 1) * sizeof(*works));
	int r = works ? 0 : -ENOMEM;

	for (uint32_t stream = 0; r == 0 && stream < view->streams.count; stream++) {
		uint32_t place = (uint32_t)idle->places.count;
		size_t count = 0;

		for (uint32_t i = 0; i < view->works.count; i++) {
			if (view->works.items[i].stream == stream && !view->works.items[i].is_wait)
				works[count++] = i;
		}
		if (!count)
			continue;
		r = array_append(&idle->places, (struct device_idle_place){.stream = stream,
							.gap_count = DEVICE_IDLE_NOT_COUNTED});
		r = r ?: add_stream(idle, view, place, works, count);
	}
	return r;
}

int hta_idle_init(struct device_idle *idle, const struct trace_view *view)
{
	int r;

	*idle = (struct device_idle){0};
	r = find_gaps(idle, view);
	if (r < 0)
		device_idle_done(idle);
	else
		device_idle_finish(idle);
	return r;
}
