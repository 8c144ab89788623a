/* SPDX-License-Identifier: Apache-2.0 */
/* One slice: its details, the stack that it comes from, and the slices that it is linked to. */
#include <errno.h>

#include "base/json.h"
#include "query/timeline/links.h"
#include "query/timeline/tracks.h"

/* ---- which slice ---- */

bool timeline_lane_find(const struct timeline_lane *lane, int64_t at_ns, size_t *ret_place)
{
	size_t low = 0, high = lane->lane.count;
	struct lane_slice slice;

	/* The last one that begins at this time or before. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lane->lane.slice(lane->lane.context, middle).start_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	slice = lane->lane.slice(lane->lane.context, low - 1);
	if (at_ns != slice.start_ns && at_ns - slice.start_ns >= slice.duration_ns)
		return false;
	*ret_place = low - 1;
	return true;
}

/* ---- details ---- */

static void begin_detail(struct json_writer *json, const char *title, const char *kind)
{
	json_begin_object(json);
	json_member_text(json, "title", title);
	json_member_text(json, "kind", kind);
	json_key(json, "value");
}

static void detail_text(struct json_writer *json, const char *title, const char *text)
{
	if (!*text)
		return;
	begin_detail(json, title, "text");
	json_string(json, text);
	json_end_object(json);
}

static void detail_amount(
	struct json_writer *json, const char *title, const char *kind, uint64_t amount)
{
	if (!amount)
		return;
	begin_detail(json, title, kind);
	json_u64(json, amount);
	json_end_object(json);
}

/* A name that happens to be a number: without separators. */
static void detail_number(struct json_writer *json, const char *title, int64_t number)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (number == TRACE_NO_NUMBER)
		return;
	strbuf_addf(&text, "%lld", (long long)number);
	detail_text(json, title, strbuf_cstr(&text));
}

static void detail_size(struct json_writer *json, const char *title, const uint32_t size[3])
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (int i = 0; i < 3 && size[i]; i++)
		strbuf_addf(&text, "%s%u", i ? " × " : "", size[i]);
	detail_text(json, title, strbuf_cstr(&text));
}

static void add_collective(struct json_writer *json, const struct trace *trace, uint32_t index)
{
	const struct trace_collective *collective;

	if (index == MODEL_NONE)
		return;
	collective = &trace->collectives.items[index];
	detail_text(json, "collective", trace_text(trace, collective->name));
	detail_text(json, "type of elements", trace_text(trace, collective->dtype));
	detail_number(json, "elements in", collective->in_elements);
	detail_number(json, "elements out", collective->out_elements);
	detail_text(json, "process group", trace_text(trace, collective->group_description));
	detail_text(json, "ranks", trace_text(trace, collective->group_ranks));
}

/* What the driver said of the launch. */
static void add_launch(struct json_writer *json, const struct model_device_work *recorded)
{
	if (!recorded)
		return;
	if (recorded->submit_ns)
		detail_amount(json, "submitted before", "ns",
			recorded->start_ns - MIN(recorded->submit_ns, recorded->start_ns));
	if (recorded->has_priority)
		detail_number(json, "priority", recorded->priority);
}

static void add_work(struct json_writer *json, const struct trace *trace,
	const struct trace_event *event, const struct trace_work *work)
{
	int64_t wait_ns;

	detail_text(json, "device", trace_device_name(trace, work->device));
	if (!*trace_device_name(trace, work->device))
		detail_number(json, "device", work->device);
	detail_number(json, "stream", work->stream);
	detail_amount(json, "bytes", "bytes", work->bytes);
	detail_size(json, "grid", work->grid);
	detail_size(json, "block", work->block);
	detail_amount(json, "registers per thread", "count", work->registers);
	detail_amount(json, "shared memory", "bytes", work->shared_bytes);
	detail_amount(json, "graph", "count", work->graph);
	detail_amount(json, "graph node", "count", work->graph_node);
	detail_text(json, "waits by", trace_text(trace, work->sync_kind));
	add_launch(json, trace_recorded_work(trace, work));
	/* Some files say 0 for what they do not know. */
	if (work->queued_ns > 0 &&
		!__builtin_sub_overflow(event->start_ns, work->queued_ns, &wait_ns) && wait_ns > 0)
		detail_amount(json, "waited in the queue", "ns", (uint64_t)wait_ns);
	add_collective(json, trace, work->collective);
}

static void add_op(struct json_writer *json, const struct trace *trace, const struct trace_op *op)
{
	detail_text(json, "shapes", trace_text(trace, op->input_dims));
	detail_text(json, "types", trace_text(trace, op->input_types));
	detail_number(json, "sequence number", op->sequence);
	add_collective(json, trace, op->collective);
}

static void add_row_details(
	struct json_writer *json, const struct trace *trace, const struct trace_event *event)
{
	const struct trace_work *work = trace_work(trace, event);
	const struct trace_op *op = work ? NULL : trace_op(trace, event);

	if (event->correlation && event->correlation <= INT64_MAX)
		detail_number(json, "correlation id", (int64_t)event->correlation);
	if (work)
		add_work(json, trace, event, work);
	if (op)
		add_op(json, trace, op);
}

/* ---- the stack ---- */

static void write_frame(struct json_writer *json, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = &model->frames.items[index];
	_cleanup_strbuf_ struct strbuf text = {0};

	model_frame_name(model, index, &text);
	if (frame->line && *frame->source_file)
		strbuf_addf(&text, " (%s:%u)", frame->source_file, frame->line);
	json_string(json, strbuf_cstr(&text));
	strbuf_inherit_status(json->out, &text);
}

static void write_model_stack(struct json_writer *json, const struct model *model, uint32_t index)
{
	const struct model_stack *stack;

	if (index == MODEL_NONE)
		return;
	stack = &model->stacks.items[index];
	for (uint32_t i = 0; i < stack->count; i++)
		write_frame(json, model, model->stack_frames.items[stack->first + i]);
}

/* What is open on a track at a time, outermost first, but for what is in `below` or deeper. */
static void write_open(const struct timeline *timeline, uint32_t track, size_t below, int64_t at_ns,
	struct json_writer *json)
{
	const struct timeline_track *self;

	if (track == MODEL_NONE)
		return;
	self = &timeline->tracks.items[track];
	for (size_t i = 0; i < MIN(below, self->lane_count); i++) {
		const struct timeline_lane *lane = &self->lanes[i];
		size_t place;

		if (timeline_lane_find(lane, at_ns, &place))
			timeline_write_name(
				timeline, lane->lane.slice(lane->lane.context, place).name, json);
	}
}

/* The row of a thread: the Python functions around it, then the rows that it lies in. */
static void write_row_stack(const struct timeline *timeline, const struct timeline_source *source,
	uint32_t row, bool with_itself, struct json_writer *json)
{
	const struct trace_event *event = &source->trace->events.items[row];
	bool is_python = event->category == TRACE_PYTHON_FUNCTION;
	int64_t at_ns = timeline_time(event->start_ns, source->offset_ns);
	size_t below = (size_t)source->lanes[row] + with_itself;

	if (!is_python)
		write_open(timeline, source->track_of[1][event->track], TIMELINE_LANES_MAX, at_ns,
			json);
	write_open(timeline, source->track_of[is_python][event->track], below, at_ns, json);
}

/* The stack of the launch where it was recorded, else what was open when the call was made. */
static void write_work_stack(const struct timeline *timeline, const struct timeline_source *source,
	const struct trace_event *event, struct json_writer *json)
{
	const struct trace *trace = source->trace;
	const struct trace_work *work = trace_work(trace, event);
	uint32_t call = trace_launch(trace, event);

	if (work && work->recorded && trace->recorded)
		write_model_stack(json, trace->recorded,
			trace->recorded->device_works.items[work->recorded - 1].stack);
	else if (call != MODEL_NONE)
		write_row_stack(timeline, source, call, true, json);
}

static void write_stack(const struct timeline *timeline, const struct timeline_lane *lane,
	size_t place, struct json_writer *json)
{
	const struct timeline_source *source = lane->source;
	uint32_t row = lane->places[place];

	if (!source)
		write_model_stack(json, timeline->model, timeline->model->samples.items[row].stack);
	else if (trace_is_work(&source->trace->events.items[row]))
		write_work_stack(timeline, source, &source->trace->events.items[row], json);
	else
		write_row_stack(timeline, source, row, false, json);
}

/* ---- all of it ---- */

static void write_link(
	const struct timeline *timeline, const struct timeline_link *link, struct json_writer *json)
{
	const struct timeline_lane *lane = &timeline->tracks.items[link->track].lanes[link->lane];
	struct lane_slice slice = lane->lane.slice(lane->lane.context, link->place);

	json_begin_object(json);
	json_member_text(json, "kind", timeline_link_name(link->kind));
	json_member_u64(json, "track", link->track);
	json_member_u64(json, "lane", link->lane);
	json_key(json, "name");
	timeline_write_name(timeline, slice.name, json);
	json_member_u64(json, "start_ns", (uint64_t)slice.start_ns);
	json_member_u64(json, "duration_ns", (uint64_t)slice.duration_ns);
	json_member_u64(json, "from_ns", (uint64_t)link->from_ns);
	json_member_u64(json, "from_lane", link->from_lane);
	json_end_object(json);
}

static void write_links(const struct timeline *timeline, const struct timeline_links *links,
	struct json_writer *json)
{
	json_key(json, "links");
	json_begin_array(json);
	array_foreach (&links->items, link)
		write_link(timeline, link, json);
	json_end_array(json);
	json_member_u64(json, "links_left_out", links->count - links->items.count);
}

/* When the slices before and after it in the lane begin. */
static void write_neighbours(
	const struct timeline_lane *lane, size_t place, struct json_writer *json)
{
	bool has_next = place + 1 < lane->lane.count;

	json_member_known(json, "previous_ns", place > 0,
		place ? (uint64_t)lane->lane.slice(lane->lane.context, place - 1).start_ns : 0);
	json_member_known(json, "next_ns", has_next,
		has_next ? (uint64_t)lane->lane.slice(lane->lane.context, place + 1).start_ns : 0);
}

static void write_slice(const struct timeline *timeline,
	const struct timeline_slice_request *request, size_t place, struct json_writer *json)
{
	const struct timeline_lane *lane =
		&timeline->tracks.items[request->track].lanes[request->lane];
	struct lane_slice slice = lane->lane.slice(lane->lane.context, place);
	const struct trace_event *event =
		lane->source ? &lane->source->trace->events.items[lane->places[place]] : NULL;

	json_member_u64(json, "track", request->track);
	json_member_u64(json, "lane", request->lane);
	json_key(json, "name");
	timeline_write_name(timeline, slice.name, json);
	json_member_text(json, "category",
		event ? trace_text(lane->source->trace, event->category_name) : NULL);
	json_member_u64(json, "start_ns", (uint64_t)slice.start_ns);
	json_member_u64(json, "duration_ns", (uint64_t)slice.duration_ns);
	write_neighbours(lane, place, json);
	json_key(json, "details");
	json_begin_array(json);
	if (event)
		add_row_details(json, lane->source->trace, event);
	json_end_array(json);
	json_key(json, "stack");
	json_begin_array(json);
	write_stack(timeline, lane, place, json);
	json_end_array(json);
}

static int check(const struct timeline *timeline, const struct timeline_slice_request *request,
	struct errmsg *err)
{
	const struct timeline_track *track;

	if (request->track >= timeline->tracks.count)
		return errmsg_set(err, -EINVAL, "there is no track %u: the last one is %zu",
			request->track, timeline->tracks.count - 1);
	track = &timeline->tracks.items[request->track];
	if (track->kind == TIMELINE_COUNTER)
		return errmsg_set(
			err, -EINVAL, "track %u is a counter, which has no slices", request->track);
	if (request->lane >= track->lane_count)
		return errmsg_set(err, -EINVAL, "track %u has %zu lanes, not %u", request->track,
			track->lane_count, request->lane + 1);
	return 0;
}

int timeline_slice(const struct timeline *timeline, const struct timeline_slice_request *request,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_timeline_links_ struct timeline_links links = {0};
	struct json_writer json = {.out = out};
	int r = check(timeline, request, err);
	size_t place;

	if (r < 0)
		return r;
	if (!timeline_lane_find(&timeline->tracks.items[request->track].lanes[request->lane],
		    request->at_ns, &place))
		return errmsg_set(err, -EINVAL,
			"track %u has no slice in lane %u at %lld ns: ask with the start of one",
			request->track, request->lane, (long long)request->at_ns);
	r = timeline_links_find(&links, timeline, request, place);
	if (r == 0) {
		json_begin_object(&json);
		write_slice(timeline, request, place, &json);
		write_links(timeline, &links, &json);
		json_end_object(&json);
		r = strbuf_status(out);
	}
	return r < 0 ? errmsg_set(err, r, "memory ran out while looking at a slice") : 0;
}
