/* SPDX-License-Identifier: Apache-2.0 */
#include "query/timeline/links.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"

const char *timeline_link_name(enum timeline_link_kind kind)
{
	static const char *const names[TIMELINE_LINK_MAX] = {
		[TIMELINE_LINK_LAUNCHED_BY] = "launched_by",
		[TIMELINE_LINK_LAUNCHED] = "launched",
		[TIMELINE_LINK_BACKWARD] = "backward",
		[TIMELINE_LINK_FORWARD] = "forward",
	};

	return names[kind];
}

void timeline_links_done(struct timeline_links *links)
{
	array_done(&links->items);
}

/* The slice whose links are looked for. */
struct search {
	const struct timeline *timeline;
	const struct timeline_source *source;
	const struct trace_event *event;
	uint32_t row;
	int64_t start_ns, end_ns;
	struct timeline_links *links;
};

static bool is_python(const struct trace_event *event)
{
	return event->category == TRACE_PYTHON_FUNCTION;
}

static int64_t start_of(const struct search *search, uint32_t row)
{
	return timeline_time(
		search->source->trace->events.items[row].start_ns, search->source->offset_ns);
}

static int add_link(struct search *search, const struct timeline_link *link)
{
	if (search->links->count++ >= TIMELINE_LINKS_MAX)
		return 0;
	return array_append(&search->links->items, *link);
}

/* To a row that is shown; one that is not is left out. `near` is at this end. */
static int add_row(struct search *search, enum timeline_link_kind kind, uint32_t near, uint32_t row)
{
	const struct timeline_source *source = search->source;
	const struct trace_event *event = &source->trace->events.items[row];
	struct timeline_link link = {.kind = kind,
		.track = source->track_of[is_python(event)][event->track],
		.lane = source->lanes[row],
		.from_ns = start_of(search, near),
		.from_lane = source->lanes[near]};

	if (link.track == MODEL_NONE || link.lane >= TIMELINE_LANES_MAX)
		return 0;
	if (!timeline_lane_find(&search->timeline->tracks.items[link.track].lanes[link.lane],
		    start_of(search, row), &link.place))
		return 0;
	return add_link(search, &link);
}

/* ---- launches ---- */

/* Does the row lie in the slice, on its thread? */
static bool is_inside(const struct search *search, uint32_t row)
{
	const struct trace_event *event = &search->source->trace->events.items[row];
	int64_t start_ns = start_of(search, row);

	return event->track == search->event->track &&
	       (row == search->row || (start_ns >= search->start_ns && start_ns < search->end_ns));
}

static int find_work_of_track(struct search *search, const struct trace_track *track)
{
	const struct trace *trace = search->source->trace;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < track->count; i++) {
		uint32_t row = trace->rows.items[track->first + i];
		const struct trace_event *event = &trace->events.items[row];
		uint32_t call = trace_is_work(event) ? trace_launch(trace, event) : MODEL_NONE;

		if (call != MODEL_NONE && is_inside(search, call))
			r = add_row(search, TIMELINE_LINK_LAUNCHED, call, row);
	}
	return r;
}

static int find_launches(struct search *search)
{
	const struct trace *trace = search->source->trace;
	uint32_t call;
	int r = 0;

	if (trace_is_work(search->event)) {
		call = trace_launch(trace, search->event);
		return call == MODEL_NONE
			       ? 0
			       : add_row(search, TIMELINE_LINK_LAUNCHED_BY, search->row, call);
	}
	array_foreach (&trace->tracks, track) {
		if (r == 0 && track->is_device)
			r = find_work_of_track(search, track);
	}
	return r;
}

/* ---- gradients ---- */

/* The innermost row of the track that an arrow begins or ends at; MODEL_NONE: none is shown. */
static uint32_t row_of_flow(const struct search *search, const struct trace_flow *flow)
{
	const struct timeline_source *source = search->source;
	uint32_t track = source->track_of[0][flow->track];
	int64_t at_ns = timeline_time(flow->time_ns, source->offset_ns);

	if (track == MODEL_NONE)
		return MODEL_NONE;
	for (size_t i = search->timeline->tracks.items[track].lane_count; i-- > 0;) {
		const struct timeline_lane *lane = &search->timeline->tracks.items[track].lanes[i];
		size_t place;

		if (timeline_lane_find(lane, at_ns, &place))
			return lane->places[place];
	}
	return MODEL_NONE;
}

static bool begins_inside(const struct search *search, const struct trace_flow *flow)
{
	int64_t at_ns = timeline_time(flow->time_ns, search->source->offset_ns);

	return flow->track == search->event->track && at_ns >= search->start_ns &&
	       at_ns < MAX(search->end_ns, search->start_ns + 1);
}

static uint64_t key_of(const struct trace_flow *flow, bool is_end)
{
	return flow->id << 1 | is_end;
}

/* Arrows have two ends with one id: the ends that lie in the slice, by their ids. */
static int find_ends(const struct search *search, uint32_t category, struct map_u64 *ends)
{
	const struct trace *trace = search->source->trace;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->flows.count; i++) {
		const struct trace_flow *flow = &trace->flows.items[i];

		if (flow->category_name == category && begins_inside(search, flow))
			r = map_u64_set(ends, key_of(flow, flow->is_end), i);
	}
	return r;
}

static int add_gradients(struct search *search, uint32_t category, const struct map_u64 *ends)
{
	const struct trace *trace = search->source->trace;
	uint64_t near_end;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->flows.count; i++) {
		const struct trace_flow *flow = &trace->flows.items[i];
		uint32_t near, far;

		if (flow->category_name != category ||
			!map_u64_get(ends, key_of(flow, !flow->is_end), &near_end))
			continue;
		near = row_of_flow(search, &trace->flows.items[near_end]);
		far = row_of_flow(search, flow);
		if (near != MODEL_NONE && far != MODEL_NONE)
			r = add_row(search,
				flow->is_end ? TIMELINE_LINK_BACKWARD : TIMELINE_LINK_FORWARD, near,
				far);
	}
	return r;
}

static int find_gradients(struct search *search)
{
	struct map_u64 ends = {0};
	uint32_t category;
	int r;

	if (search->event->category == TRACE_PYTHON_FUNCTION ||
		!intern_find(&search->source->trace->strings, TRACE_FLOW_TO_BACKWARD,
			strlen(TRACE_FLOW_TO_BACKWARD), &category))
		return 0;
	r = find_ends(search, category, &ends);
	if (r == 0)
		r = add_gradients(search, category, &ends);
	map_u64_done(&ends);
	return r;
}

int timeline_links_find(struct timeline_links *links, const struct timeline *timeline,
	const struct timeline_slice_request *request, size_t place)
{
	const struct timeline_lane *lane =
		&timeline->tracks.items[request->track].lanes[request->lane];
	struct lane_slice slice = lane->lane.slice(lane->lane.context, place);
	struct search search = {
		.timeline = timeline,
		.source = lane->source,
		.row = lane->places[place],
		.start_ns = slice.start_ns,
		.end_ns = slice.start_ns + slice.duration_ns,
		.links = links,
	};
	int r;

	if (!lane->source)
		return 0;
	search.event = &lane->source->trace->events.items[search.row];
	r = find_launches(&search);
	return r < 0 ? r : find_gradients(&search);
}
