/* SPDX-License-Identifier: Apache-2.0 */
/* A tile: what a track shows of a span of time, in the layout of timeline.h. */
#include <endian.h>
#include <errno.h>

#include "query/timeline/tracks.h"

/* ---- little-endian ---- */

static void put_u32(struct strbuf *out, uint32_t value)
{
	uint32_t bytes = htole32(value);

	strbuf_add_bytes(out, &bytes, sizeof(bytes));
}

static void put_f64(struct strbuf *out, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bits = htole64(bits);
	strbuf_add_bytes(out, &bits, sizeof(bits));
}

static void put_head(struct strbuf *out, const struct timeline_request *request, bool is_counter,
	size_t count, size_t flows, size_t flows_left_out)
{
	put_u32(out, TIMELINE_MAGIC);
	put_u32(out, TIMELINE_VERSION);
	put_u32(out, request->track);
	put_u32(out, is_counter);
	put_f64(out, (double)request->from_ns);
	put_f64(out, (double)request->to_ns);
	put_u32(out, request->columns);
	put_u32(out, (uint32_t)count);
	put_u32(out, (uint32_t)flows);
	put_u32(out, (uint32_t)flows_left_out);
}

/* ---- slices ---- */

struct flow {
	double from_ns, to_ns;
	uint32_t from_track, from_lane, to_lane;
};

/* What a tile of slices has. */
struct slices {
	const struct timeline_track *track;
	struct lane_groups groups;
	ARRAY_OF(size_t) ends; /* by lane: the groups up to it */
	ARRAY_OF(struct flow) flows;
	size_t flow_count; /* with those that are too many */
};

static void slices_done(struct slices *slices)
{
	array_done(&slices->groups.items);
	array_done(&slices->ends);
	array_done(&slices->flows);
}

/* The call that launched a row, if both are shown. */
static bool find_flow(const struct slices *slices, const struct timeline_lane *lane,
	const struct lane_group *group, struct flow *ret_flow)
{
	const struct timeline_source *source = lane->source;
	const struct trace *trace = source->trace;
	const struct trace_event *work = &trace->events.items[lane->places[group->first]];
	uint32_t call, track;

	if (group->count != 1 || !trace_is_work(work))
		return false;
	call = trace_launch(trace, work);
	if (call == MODEL_NONE || source->lanes[call] >= TIMELINE_LANES_MAX)
		return false;
	track = source->track_of[trace->events.items[call].category == TRACE_PYTHON_FUNCTION]
				[trace->events.items[call].track];
	if (track == MODEL_NONE)
		return false;
	ret_flow->from_ns =
		(double)timeline_time(trace->events.items[call].start_ns, source->offset_ns);
	ret_flow->to_ns = (double)group->sum.start_ns;
	ret_flow->from_track = track;
	ret_flow->from_lane = source->lanes[call];
	ret_flow->to_lane = (uint32_t)(lane - slices->track->lanes);
	return true;
}

static int add_flows(struct slices *slices, const struct timeline_lane *lane, size_t first)
{
	int r = 0;

	for (size_t i = first; r == 0 && i < slices->groups.items.count; i++) {
		struct flow flow;

		if (!find_flow(slices, lane, &slices->groups.items.items[i], &flow))
			continue;
		if (slices->flow_count++ < TIMELINE_FLOWS_MAX)
			r = array_append(&slices->flows, flow);
	}
	return r;
}

static int draw(struct slices *slices, const struct timeline_request *request, int64_t column_ns)
{
	const struct timeline_track *track = slices->track;
	int r = 0;

	for (size_t i = 0; r == 0 && i < track->lane_count; i++) {
		const struct timeline_lane *lane = &track->lanes[i];
		size_t first = slices->groups.items.count;

		r = lane_draw(
			&lane->lane, request->from_ns, request->to_ns, column_ns, &slices->groups);
		if (r == 0 && track->kind == TIMELINE_STREAM)
			r = add_flows(slices, lane, first);
		if (r == 0)
			r = array_append(&slices->ends, slices->groups.items.count);
	}
	if (slices->flow_count > TIMELINE_FLOWS_MAX)
		array_clear(&slices->flows);
	return r;
}

static void put_flows(struct strbuf *out, const struct slices *slices)
{
	array_foreach (&slices->flows, flow)
		put_f64(out, flow->from_ns);
	array_foreach (&slices->flows, flow)
		put_f64(out, flow->to_ns);
	array_foreach (&slices->flows, flow)
		put_u32(out, flow->from_track);
	array_foreach (&slices->flows, flow)
		put_u32(out, flow->from_lane);
	array_foreach (&slices->flows, flow)
		put_u32(out, flow->to_lane);
	array_foreach (&slices->flows, flow)
		put_u32(out, 0);
}

static void put_slices(struct strbuf *out, const struct slices *slices)
{
	array_foreach (&slices->groups.items, group)
		put_f64(out, (double)group->sum.start_ns);
	array_foreach (&slices->groups.items, group)
		put_f64(out, (double)(group->sum.end_ns - group->sum.start_ns));
	array_foreach (&slices->groups.items, group)
		put_f64(out, (double)group->sum.busy_ns);
	array_foreach (&slices->groups.items, group)
		put_u32(out, group->sum.name);
	array_foreach (&slices->groups.items, group)
		put_u32(out, group->count);
	for (uint32_t lane = 0, i = 0; lane < slices->ends.count; lane++) {
		for (; i < slices->ends.items[lane]; i++)
			put_u32(out, lane);
	}
	array_foreach (&slices->groups.items, group)
		put_u32(out, group->sum.category);
}

static int write_slices(const struct timeline *timeline, const struct timeline_request *request,
	int64_t column_ns, struct strbuf *out)
{
	_cleanup_(slices_done) struct slices slices = {
		.track = &timeline->tracks.items[request->track]};
	int r = draw(&slices, request, column_ns);

	if (r < 0)
		return r;
	put_head(out, request, false, slices.groups.items.count, slices.flows.count,
		slices.flow_count - slices.flows.count);
	put_slices(out, &slices);
	put_flows(out, &slices);
	return strbuf_status(out);
}

/* ---- counters ---- */

static int write_counter(const struct timeline *timeline, const struct timeline_request *request,
	int64_t column_ns, struct strbuf *out)
{
	const struct counter *counter = &timeline->tracks.items[request->track].counter;
	struct counter_columns columns = {0};
	int r = counter_draw(counter, request->from_ns, request->to_ns, column_ns, &columns);

	if (r == 0) {
		put_head(out, request, true, columns.items.count, 0, 0);
		array_foreach (&columns.items, column)
			put_f64(out, (double)column->start_ns);
		array_foreach (&columns.items, column)
			put_f64(out, column->first);
		array_foreach (&columns.items, column)
			put_f64(out, column->minimum);
		array_foreach (&columns.items, column)
			put_f64(out, column->maximum);
		array_foreach (&columns.items, column)
			put_f64(out, column->last);
		r = strbuf_status(out);
	}
	array_done(&columns.items);
	return r;
}

/* ---- what is asked ---- */

static int check(
	const struct timeline *timeline, const struct timeline_request *request, struct errmsg *err)
{
	if (request->track >= timeline->tracks.count)
		return errmsg_set(err, -EINVAL, "there is no track %u: the last one is %zu",
			request->track, timeline->tracks.count - 1);
	if (request->from_ns < 0 || request->to_ns > TIMELINE_END_NS ||
		request->from_ns >= request->to_ns)
		return errmsg_set(err, -EINVAL,
			"a tile is from a time, 0 ns or later, to a later one, not from %lld to "
			"%lld",
			(long long)request->from_ns, (long long)request->to_ns);
	if (request->columns < 1 || request->columns > TIMELINE_COLUMNS_MAX)
		return errmsg_set(err, -EINVAL, "a tile is 1 to %d columns wide, not %u",
			TIMELINE_COLUMNS_MAX, request->columns);
	return 0;
}

int timeline_tile(const struct timeline *timeline, const struct timeline_request *request,
	struct strbuf *out, struct errmsg *err)
{
	int r = check(timeline, request, err);
	int64_t column_ns;

	if (r < 0)
		return r;
	column_ns = (request->to_ns - request->from_ns - 1) / request->columns + 1;
	if (timeline->tracks.items[request->track].kind == TIMELINE_COUNTER)
		r = write_counter(timeline, request, column_ns, out);
	else
		r = write_slices(timeline, request, column_ns, out);
	return r < 0 ? errmsg_set(err, r, "memory ran out while making a tile") : 0;
}
