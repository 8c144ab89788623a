/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/trace_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/forward.h"

#define DEEPEST 512 /* frames of a stack; rows further in count as the row there */

struct open_row {
	int64_t start_ns, end_ns;
	uint32_t place;
	bool is_capture; /* its time does not count */
};

/* One thread after the other, its rows by start. */
struct sweep {
	struct trace_stacks *stacks;
	const struct trace_view *view;
	struct open_row *open; /* each lies in the one before it */
	size_t depth;
	int64_t at_ns; /* the time before it belongs to a row */
	uint32_t track;
	bool wants_stretches;
	uint32_t *forwards; /* by row; NULL: rows of the backward pass stay where they are */
	uint32_t *before;   /* by row: places without that */
	uint32_t backward;  /* frame */
};

/* ---- places ---- */

int trace_stacks_enter(
	struct trace_stacks *stacks, uint32_t parent, uint32_t frame, uint32_t *ret_place)
{
	uint64_t key = (uint64_t)parent << 32 | frame, known;
	struct trace_place place = {
		.parent = parent, .frame = frame, .depth = 1, .stack = MODEL_NONE};
	int r;

	if (parent != MODEL_NONE)
		place.depth = stacks->places.items[parent].depth + 1;
	if (place.depth > DEEPEST) {
		*ret_place = parent;
		return 0;
	}
	if (map_u64_get(&stacks->children, key, &known)) {
		*ret_place = (uint32_t)known;
		return 0;
	}
	*ret_place = (uint32_t)stacks->places.count;
	r = map_u64_set(&stacks->children, key, *ret_place);
	return r < 0 ? r : array_append(&stacks->places, place);
}

int trace_stacks_get(struct trace_stacks *stacks, uint32_t place, uint32_t *ret_stack)
{
	struct model *model = stacks->frames.model;
	struct model_stack stack = {.stop = WIRE_STOP_COMPLETE};
	struct trace_place *found;
	int r;

	*ret_stack = MODEL_NONE;
	if (place == MODEL_NONE)
		return 0;
	found = &stacks->places.items[place];
	*ret_stack = found->stack;
	if (found->stack != MODEL_NONE)
		return 0;
	stack.count = stack.whole_count = found->depth;
	r = array_reserve(&model->stack_frames, stack.count);
	if (r < 0 || model->stack_frames.count + stack.count > UINT32_MAX)
		return -ENOMEM;
	stack.first = (uint32_t)model->stack_frames.count;
	model->stack_frames.count += stack.count;
	for (uint32_t at = place; at != MODEL_NONE; at = stacks->places.items[at].parent)
		model->stack_frames.items[stack.first + stacks->places.items[at].depth - 1] =
			stacks->places.items[at].frame;
	found->stack = *ret_stack = (uint32_t)model->stacks.count;
	return array_append(&model->stacks, stack);
}

/* ---- time ---- */

static int add_stretch(struct sweep *sweep, const struct open_row *row, int64_t end_ns)
{
	struct trace_stretch stretch = {
		.start_ns = sweep->at_ns,
		.end_ns = end_ns,
		.track = sweep->track,
		.place = row->place,
	};

	sweep->at_ns = end_ns;
	return sweep->wants_stretches && !row->is_capture
		       ? array_append(&sweep->stacks->stretches, stretch)
		       : 0;
}

/* The time up to `time_ns` is the innermost row's; those that end before are closed. */
static int pass_time(struct sweep *sweep, int64_t time_ns)
{
	while (sweep->depth) {
		const struct open_row *top = &sweep->open[sweep->depth - 1];
		int64_t end_ns = MIN(top->end_ns, time_ns);
		int r = end_ns > sweep->at_ns ? add_stretch(sweep, top, end_ns) : 0;

		if (r < 0)
			return r;
		/* Of two rows without length at one moment the second lies in the first. */
		if (top->end_ns > time_ns || top->start_ns == time_ns)
			break;
		sweep->depth--;
	}
	sweep->at_ns = MAX(sweep->at_ns, time_ns);
	return 0;
}

/* ---- rows ---- */

/* Most of it, where it ends later. */
static bool lies_in(const struct open_row *outer, const struct open_row *row)
{
	return outer->end_ns >= row->end_ns ||
	       outer->end_ns - row->start_ns > row->end_ns - outer->end_ns;
}

/* The module that a place is in, itself included; MODEL_NONE: in none. */
static uint32_t module_of(const struct trace_stacks *stacks, uint32_t place)
{
	while (place != MODEL_NONE &&
		!trace_frames_is_module(&stacks->frames, stacks->places.items[place].frame))
		place = stacks->places.items[place].parent;
	return place;
}

/* What a row lies in whose operator of the forward pass is known, where that is in a module. */
static int find_forward_parent(struct sweep *sweep, uint32_t row, uint32_t *parent)
{
	struct trace_stacks *stacks = sweep->stacks;
	uint32_t forward = sweep->forwards ? sweep->forwards[row] : MODEL_NONE, module;

	if (forward == MODEL_NONE || module_of(stacks, *parent) != MODEL_NONE)
		return 0;
	module = module_of(stacks, sweep->before[forward]);
	return module == MODEL_NONE ? 0
				    : trace_stacks_enter(stacks, module, sweep->backward, parent);
}

static int add_row(struct sweep *sweep, uint32_t row)
{
	struct trace_stacks *stacks = sweep->stacks;
	const struct trace_event *event = &sweep->view->trace->events.items[row];
	struct open_row open = {
		.start_ns = trace_view_start_ns(sweep->view, event),
		.is_capture = event->is_capture,
	};
	uint32_t frame, parent = MODEL_NONE;
	int r;

	open.end_ns = MAX(trace_view_end_ns(sweep->view, event), open.start_ns);
	r = pass_time(sweep, open.start_ns);
	if (r < 0)
		return r;
	/* What ends before this one does not get the time back. */
	while (sweep->depth && !lies_in(&sweep->open[sweep->depth - 1], &open))
		sweep->depth--;
	if (sweep->depth)
		parent = sweep->open[sweep->depth - 1].place;
	r = find_forward_parent(sweep, row, &parent);
	if (r == 0)
		r = trace_frames_find(&stacks->frames, sweep->view->trace, event, &frame);
	if (r == 0)
		r = trace_stacks_enter(stacks, parent, frame, &open.place);
	if (r < 0)
		return r;
	stacks->by_row[row] = open.place;
	sweep->open[sweep->depth++] = open;
	return 0;
}

static int add_track(struct sweep *sweep, uint32_t index)
{
	const struct trace *trace = sweep->view->trace;
	const struct trace_track *track = &trace->tracks.items[index];
	int r = 0;

	sweep->track = index;
	sweep->at_ns = INT64_MIN;
	for (uint32_t i = 0; r == 0 && i < track->count; i++) {
		uint32_t row = trace->rows.items[track->first + i];

		if (trace_view_is_of_thread(sweep->view, &trace->events.items[row]) ||
			trace->events.items[row].is_capture)
			r = add_row(sweep, row);
	}
	return r < 0 ? r : pass_time(sweep, INT64_MAX);
}

static int sweep_tracks(struct sweep *sweep)
{
	const struct trace *trace = sweep->view->trace;
	struct trace_stacks *stacks = sweep->stacks;
	int r = 0;

	memset(stacks->by_row, 0xff, trace->events.count * sizeof(*stacks->by_row));
	for (uint32_t i = 0; r == 0 && i < trace->tracks.count; i++)
		r = add_track(sweep, i);
	return r;
}

/* Once without, to know where the forward pass is; the places that are left over have no time. */
static int sweep_backward(struct sweep *sweep)
{
	const struct trace *trace = sweep->view->trace;
	bool wants_stretches = sweep->wants_stretches;
	size_t size = trace->events.count * sizeof(*sweep->before);
	int r;

	sweep->wants_stretches = false;
	r = sweep_tracks(sweep);
	if (r == 0)
		r = trace_frames_backward(&sweep->stacks->frames, &sweep->backward);
	sweep->wants_stretches = wants_stretches;
	sweep->before = malloc(size + 1);
	sweep->forwards = trace_forward_rows(trace);
	if (r < 0 || !sweep->before || !sweep->forwards)
		return -ENOMEM;
	if (size)
		memcpy(sweep->before, sweep->stacks->by_row, size);
	return sweep_tracks(sweep);
}

int trace_stacks_find(
	struct trace_stacks *stacks, const struct trace_view *view, bool wants_stretches)
{
	const struct trace *trace = view->trace;
	struct sweep sweep = {.stacks = stacks, .view = view, .wants_stretches = wants_stretches};
	uint32_t longest = 0;
	int r = -ENOMEM;

	array_foreach (&trace->tracks, track)
		longest = MAX(longest, track->count);
	trace_frames_next_trace(&stacks->frames);
	array_clear(&stacks->stretches);
	free(stacks->by_row);
	stacks->by_row = malloc((trace->events.count + 1) * sizeof(*stacks->by_row));
	sweep.open = malloc(((size_t)longest + 1) * sizeof(*sweep.open));
	if (stacks->by_row && sweep.open)
		r = stacks->joins_backward ? sweep_backward(&sweep) : sweep_tracks(&sweep);
	free(sweep.open);
	free(sweep.before);
	free(sweep.forwards);
	return r;
}

void trace_stacks_done(struct trace_stacks *stacks)
{
	trace_frames_done(&stacks->frames);
	array_done(&stacks->places);
	map_u64_done(&stacks->children);
	array_done(&stacks->stretches);
	free(stacks->by_row);
	stacks->by_row = NULL;
}
