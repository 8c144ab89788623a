/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks of rows: threads, their Python functions, and streams of devices. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "query/timeline/tracks.h"

static bool is_python(const struct trace_event *event)
{
	return event->category == TRACE_PYTHON_FUNCTION;
}

/* What has no time of its own is a counter's value. */
static bool is_shown(const struct trace_event *event)
{
	return !event->is_capture &&
	       (event->category != TRACE_CPU_INSTANT || event->detail == MODEL_NONE);
}

static struct lane_slice slice_of(
	const struct timeline_source *source, const struct trace_event *event)
{
	int64_t duration_ns = event->duration_ns == TRACE_NO_DURATION ? 0 : event->duration_ns;

	return (struct lane_slice){
		.start_ns = timeline_time(event->start_ns, source->offset_ns),
		.duration_ns = timeline_time(duration_ns, 0),
		.name = source->first_name + event->name,
		.category = event->category,
	};
}

static struct lane_slice row_slice(const void *context, size_t n)
{
	const struct timeline_lane *lane = context;

	return slice_of(lane->source, &lane->source->trace->events.items[lane->places[n]]);
}

/* ---- tracks ---- */

/* Some rows of PyTorch's profiler have neither a process nor a thread. */
static const char *text_or_other(const struct trace *trace, uint32_t text)
{
	return text ? trace_text(trace, text) : "other rows";
}

static const char *process_name(
	struct timeline *timeline, const struct trace *trace, const struct trace_track *track)
{
	const char *name = trace_text(trace, track->process_name);
	const char *labels = trace_text(trace, track->process_labels);

	if (track->is_device && *labels)
		return labels;
	if (*name)
		return name;
	if (track->pid == TRACE_NO_NUMBER)
		return text_or_other(trace, track->pid_text);
	return timeline_text(
		timeline, track->is_device ? "device %lld" : "process %lld", (long long)track->pid);
}

static const char *thread_name(
	struct timeline *timeline, const struct trace *trace, const struct trace_track *track)
{
	const char *name = trace_text(trace, track->thread_name);

	if (*name)
		return name;
	if (track->tid == TRACE_NO_NUMBER)
		return text_or_other(trace, track->tid_text);
	return timeline_text(
		timeline, track->is_device ? "stream %lld" : "thread %lld", (long long)track->tid);
}

static int add_track(
	struct timeline *timeline, uint32_t source, uint32_t index, enum timeline_kind kind)
{
	const struct trace *trace = timeline->sources.items[source].trace;
	const struct trace_track *track = &trace->tracks.items[index];
	const struct timeline_track added = {
		.kind = kind,
		.source = source,
		.process_sort = track->process_sort,
		.pid = track->pid,
		.thread_sort = track->thread_sort,
		.tid = track->tid,
		.trace_track = index,
		.thread = MODEL_NONE,
		.process = process_name(timeline, trace, track),
		.name = thread_name(timeline, trace, track),
	};

	if (!added.process || !added.name)
		return -ENOMEM;
	return array_append(&timeline->tracks, added);
}

/* Which kinds of rows has it? */
static void look_at(const struct trace *trace, const struct trace_track *track, bool *ret_rows,
	bool *ret_python)
{
	*ret_rows = *ret_python = false;
	for (uint32_t i = 0; i < track->count && !(*ret_rows && *ret_python); i++) {
		const struct trace_event *event =
			&trace->events.items[trace->rows.items[track->first + i]];

		*ret_python |= is_python(event) && is_shown(event);
		*ret_rows |= !is_python(event) && is_shown(event);
	}
}

int timeline_add_row_tracks(struct timeline *timeline)
{
	int r = 0;

	for (uint32_t source = 0; source < timeline->sources.count; source++) {
		const struct trace *trace = timeline->sources.items[source].trace;

		for (uint32_t i = 0; r == 0 && i < trace->tracks.count; i++) {
			const struct trace_track *track = &trace->tracks.items[i];
			bool has_rows, has_python;

			look_at(trace, track, &has_rows, &has_python);
			if (has_rows)
				r = add_track(timeline, source, i,
					track->is_device ? TIMELINE_STREAM : TIMELINE_THREAD);
			if (r == 0 && has_python)
				r = add_track(timeline, source, i, TIMELINE_PYTHON);
		}
	}
	return r;
}

/* ---- lanes ---- */

/* Slices that are open, by lane. */
struct nesting {
	int64_t ends_ns[TIMELINE_LANES_MAX];
	size_t counts[TIMELINE_LANES_MAX];
	size_t depth, deepest;
};

/* Says in which lane each row of the track lies. */
static void find_lanes(
	struct timeline_track *track, const struct timeline_source *source, struct nesting *nesting)
{
	const struct trace *trace = source->trace;
	const struct trace_track *rows = &trace->tracks.items[track->trace_track];

	for (uint32_t i = 0; i < rows->count; i++) {
		uint32_t row = trace->rows.items[rows->first + i];
		const struct trace_event *event = &trace->events.items[row];
		struct lane_slice slice = slice_of(source, event);

		if (!is_shown(event) || is_python(event) != (track->kind == TIMELINE_PYTHON))
			continue;
		while (nesting->depth && nesting->ends_ns[nesting->depth - 1] <= slice.start_ns)
			nesting->depth--;
		source->lanes[row] = (uint8_t)nesting->depth;
		if (nesting->depth == TIMELINE_LANES_MAX) {
			track->too_deep++;
			continue;
		}
		track->slices++;
		nesting->counts[nesting->depth]++;
		nesting->ends_ns[nesting->depth++] = slice.start_ns + slice.duration_ns;
		nesting->deepest = MAX(nesting->deepest, nesting->depth);
	}
}

static int add_lanes(
	struct timeline *timeline, struct timeline_track *track, const struct nesting *nesting)
{
	track->lanes = calloc(nesting->deepest + 1, sizeof(*track->lanes));
	if (!track->lanes)
		return -ENOMEM;
	track->lane_count = nesting->deepest;
	for (size_t i = 0; i < nesting->deepest; i++) {
		track->lanes[i].timeline = timeline;
		track->lanes[i].source = &timeline->sources.items[track->source];
		track->lanes[i].places = malloc(nesting->counts[i] * sizeof(uint32_t));
		if (!track->lanes[i].places)
			return -ENOMEM;
	}
	return 0;
}

static void fill_lanes(struct timeline_track *track, const struct timeline_source *source)
{
	const struct trace *trace = source->trace;
	const struct trace_track *rows = &trace->tracks.items[track->trace_track];
	size_t counts[TIMELINE_LANES_MAX] = {0};

	for (uint32_t i = 0; i < rows->count; i++) {
		uint32_t row = trace->rows.items[rows->first + i];
		const struct trace_event *event = &trace->events.items[row];
		uint8_t lane = source->lanes[row];

		if (is_shown(event) && is_python(event) == (track->kind == TIMELINE_PYTHON) &&
			lane < TIMELINE_LANES_MAX)
			track->lanes[lane].places[counts[lane]++] = row;
	}
}

int timeline_fill_rows(struct timeline *timeline, struct timeline_track *track)
{
	const struct timeline_source *source = &timeline->sources.items[track->source];
	struct nesting nesting = {0};
	int r;

	find_lanes(track, source, &nesting);
	r = add_lanes(timeline, track, &nesting);
	if (r < 0)
		return r;
	fill_lanes(track, source);
	for (size_t i = 0; r == 0 && i < track->lane_count; i++) {
		struct timeline_lane *lane = &track->lanes[i];

		r = lane_init(&lane->lane, row_slice, lane, nesting.counts[i]);
	}
	return r;
}
