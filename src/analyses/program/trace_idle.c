/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/trace_idle.h"

/* The first stretch of a thread that ends after a moment, or the first of the next thread. */
static size_t find_stretch(const struct trace_stacks *stacks, uint32_t track, int64_t time_ns)
{
	size_t low = 0, high = stacks->stretches.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct trace_stretch *stretch = &stacks->stretches.items[middle];

		if (stretch->track < track ||
			(stretch->track == track && stretch->end_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int add_part(struct trace_idle *idle, struct trace_idle_part part, int64_t end_ns)
{
	part.end_ns = end_ns;
	return part.end_ns > part.start_ns ? array_append(&idle->parts, part) : 0;
}

/* By what the thread was in; nothing, between its rows. */
static int add_by_stretches(
	struct trace_idle *idle, const struct trace_stacks *stacks, struct trace_idle_part part)
{
	int64_t end_ns = part.end_ns;
	size_t i = find_stretch(stacks, part.track, part.start_ns);
	int r = 0;

	for (; r == 0 && i < stacks->stretches.count; i++) {
		const struct trace_stretch *stretch = &stacks->stretches.items[i];

		if (stretch->track != part.track || stretch->start_ns >= end_ns)
			break;
		part.place = MODEL_NONE;
		r = add_part(idle, part, stretch->start_ns);
		part.start_ns = MAX(part.start_ns, stretch->start_ns);
		part.place = stretch->place;
		if (r == 0)
			r = add_part(idle, part, MIN(stretch->end_ns, end_ns));
		part.start_ns = MIN(stretch->end_ns, end_ns);
	}
	part.place = MODEL_NONE;
	return r < 0 ? r : add_part(idle, part, end_ns);
}

static int add_gap(struct trace_idle *idle, const struct trace_stacks *stacks,
	const struct trace_view *view, const struct device_idle_gap *gap)
{
	const struct trace_view_work *next = &view->works.items[gap->next];
	bool has_launch = next->launch != MODEL_NONE;
	const struct trace_event *owner =
		&view->trace->events.items[has_launch ? next->launch : next->row];
	const struct trace_idle_part part = {
		.start_ns = gap->start_ns,
		.end_ns = gap->end_ns,
		.track = owner->track,
		.place = has_launch ? stacks->by_row[next->launch] : MODEL_NONE,
		.cause = gap->cause,
	};

	if (gap->cause == DEVICE_IDLE_HOST || gap->cause == DEVICE_IDLE_BLOCKED)
		return add_by_stretches(idle, stacks, part);
	return add_part(idle, part, gap->end_ns);
}

int trace_idle_find(
	struct trace_idle *idle, const struct trace_stacks *stacks, const struct trace_view *view)
{
	_cleanup_device_idle_ struct device_idle gaps = {0};
	int r = device_idle_init(&gaps, view);

	for (size_t i = 0; r == 0 && i < gaps.gaps.count; i++) {
		const struct device_idle_gap *gap = &gaps.gaps.items[i];

		if (gaps.places.items[gap->place].stream == MODEL_NONE)
			r = add_gap(idle, stacks, view, gap);
	}
	return r;
}

void trace_idle_done(struct trace_idle *idle)
{
	array_done(&idle->parts);
}
