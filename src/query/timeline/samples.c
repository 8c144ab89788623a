/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks of samples: the innermost function of each thread, or what it waited for. */
#include <errno.h>
#include <stdlib.h>

#include "query/timeline/tracks.h"

/* ---- slices ---- */

/* The innermost function, but for the Python interpreter's own. */
static uint32_t function_of(const struct model *model, const struct model_stack *stack)
{
	const uint32_t *frames = model->stack_frames.items + stack->first;
	uint32_t innermost = model->frames.items[frames[stack->count - 1]].function;

	for (uint32_t i = stack->count; i-- > 0;) {
		uint32_t function = model->frames.items[frames[i]].function;

		if (model->functions.items[function].class != MODEL_CLASS_INTERPRETER)
			return function;
	}
	return innermost;
}

static uint32_t name_of(const struct timeline *timeline, const struct model_sample *sample)
{
	const struct model *model = timeline->model;

	if (sample->wait != WIRE_WAIT_NONE)
		return timeline->first_wait + MIN(sample->wait, (uint8_t)(WIRE_WAIT_MAX - 1));
	if (sample->stack == MODEL_NONE || !model->stacks.items[sample->stack].count)
		return timeline->first_wait; /* no stack */
	return timeline->first_function + function_of(model, &model->stacks.items[sample->stack]);
}

/* A sample stands for the time before it, but not for that of the one before. */
static struct lane_slice sample_slice(const void *context, size_t n)
{
	const struct timeline_lane *lane = context;
	const struct timeline *timeline = lane->timeline;
	const struct model_sample *samples = timeline->model->samples.items;
	const struct model_sample *sample = &samples[lane->places[n]];
	uint64_t time_ns = model_sample_time_ns(timeline->model, sample);
	int64_t end_ns = timeline_model_time(timeline, sample->time_ns);
	int64_t start_ns = timeline_time(
		end_ns, -timeline_time((int64_t)MIN(time_ns, (uint64_t)INT64_MAX), 0));

	if (n)
		start_ns = MAX(start_ns,
			timeline_model_time(timeline, samples[lane->places[n - 1]].time_ns));
	return (struct lane_slice){
		.start_ns = start_ns,
		.duration_ns = end_ns - start_ns,
		.name = name_of(timeline, sample),
		.category = sample->wait != WIRE_WAIT_NONE,
	};
}

/* ---- tracks ---- */

static int add_track(struct timeline *timeline, uint32_t thread, size_t count)
{
	const struct model *model = timeline->model;
	const struct model_thread *self = &model->threads.items[thread];
	const struct model_process *process = &model->processes.items[self->process];
	const struct timeline_track added = {
		.kind = TIMELINE_SAMPLES,
		.process_sort = TRACE_NO_NUMBER,
		.pid = process->pid,
		.thread_sort = TRACE_NO_NUMBER,
		.tid = self->tid,
		.trace_track = MODEL_NONE,
		.thread = thread,
		.process = process->name,
		.name = self->name,
		.slices = count,
	};

	return array_append(&timeline->tracks, added);
}

/* How many samples each thread has; the caller's, for free(). */
static size_t *count_by_thread(const struct model *model)
{
	size_t *counts = calloc(model->threads.count + 1, sizeof(*counts));

	if (!counts)
		return NULL;
	array_foreach (&model->samples, sample)
		counts[sample->thread]++;
	return counts;
}

int timeline_add_sample_tracks(struct timeline *timeline)
{
	_cleanup_free_ size_t *counts = count_by_thread(timeline->model);
	int r = counts ? 0 : -ENOMEM;

	for (uint32_t thread = 0; r == 0 && thread < timeline->model->threads.count; thread++) {
		if (counts[thread])
			r = add_track(timeline, thread, counts[thread]);
	}
	return r;
}

static int add_lane(struct timeline *timeline, struct timeline_track *track)
{
	struct timeline_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return -ENOMEM;
	track->lanes = lane;
	track->lane_count = 1;
	lane->timeline = timeline;
	lane->places = malloc(track->slices * sizeof(*lane->places));
	return lane->places ? 0 : -ENOMEM;
}

/* The lane of each thread, NULL without samples; the caller's, for free(). */
static struct timeline_lane **lanes_by_thread(struct timeline *timeline)
{
	struct timeline_lane **lanes = calloc(timeline->model->threads.count + 1, sizeof(*lanes));

	if (!lanes)
		return NULL;
	array_foreach (&timeline->tracks, track) {
		if (track->kind == TIMELINE_SAMPLES)
			lanes[track->thread] = track->lanes;
	}
	return lanes;
}

int timeline_fill_samples(struct timeline *timeline)
{
	const struct model *model = timeline->model;
	_cleanup_free_ struct timeline_lane **lanes = NULL;
	int r = 0;

	array_foreach (&timeline->tracks, track) {
		if (r == 0 && track->kind == TIMELINE_SAMPLES)
			r = add_lane(timeline, track);
	}
	lanes = r < 0 ? NULL : lanes_by_thread(timeline);
	if (!lanes)
		return -ENOMEM;
	for (size_t i = 0; i < model->samples.count; i++) {
		struct timeline_lane *lane = lanes[model->samples.items[i].thread];

		lane->places[lane->lane.count++] = (uint32_t)i;
	}
	array_foreach (&timeline->tracks, track) {
		if (r == 0 && track->kind == TIMELINE_SAMPLES)
			r = lane_init(&track->lanes->lane, sample_slice, track->lanes,
				track->lanes->lane.count);
	}
	return r;
}
