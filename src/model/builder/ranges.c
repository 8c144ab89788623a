/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges, from their begins and ends: on each track an end is that of the innermost open one. */
#include <stdlib.h>
#include <string.h>

#include "model/builder/internal.h"

void builder_ranges_done(struct model_builder *builder)
{
	array_foreach (&builder->range_tracks, track)
		array_done(&track->open);
	array_done(&builder->range_tracks);
	array_done(&builder->ranges);
	map_u64_done(&builder->range_track_index);
}

static int find_track(struct model_builder *builder, uint64_t track, struct range_track **ret_track)
{
	uint64_t index;
	int r;

	if (!map_u64_get(&builder->range_track_index, track, &index)) {
		index = builder->range_tracks.count;
		r = array_append(&builder->range_tracks, (struct range_track){0});
		r = r ?: map_u64_set(&builder->range_track_index, track, index);
		if (r < 0)
			return r;
	}
	*ret_track = &builder->range_tracks.items[index];
	return 0;
}

static int keep_field(struct model_builder *builder, const struct capture_range_field *field)
{
	struct model_range_field kept = {.value = field->value, .type = (uint8_t)field->type};
	int r = builder_keep(builder, field->name, &kept.name);

	r = r ?: builder_keep(builder, field->text, &kept.text);
	return r ?: array_append(&builder->model->range_fields, kept);
}

static bool has_field(const struct capture_range_event *event, const char *name)
{
	for (uint32_t i = 0; i < event->field_count; i++) {
		if (strcmp(event->fields[i].name, name) == 0)
			return true;
	}
	return false;
}

/* Fields lie together: those that come later move, or replace, the earlier ones. */
static int add_fields(struct model_builder *builder, struct model_range *range,
	const struct capture_range_event *event)
{
	uint32_t first = (uint32_t)builder->model->range_fields.count;
	int r = 0;

	for (uint32_t i = 0; r == 0 && event->field_count && i < range->field_count; i++) {
		struct model_range_field earlier =
			builder->model->range_fields.items[range->first_field + i];

		if (!has_field(event, earlier.name))
			r = array_append(&builder->model->range_fields, earlier);
	}
	for (uint32_t i = 0; r == 0 && i < event->field_count; i++)
		r = keep_field(builder, &event->fields[i]);
	if (r < 0 || !event->field_count)
		return r;
	range->first_field = first;
	range->field_count = (uint32_t)builder->model->range_fields.count - first;
	return 0;
}

static int begin(struct model_builder *builder, struct range_track *track,
	const struct capture_range_event *event)
{
	struct raw_range raw = {
		.range = {.start_ns = event->time_ns,
			.end_ns = event->time_ns,
			.depth = (uint32_t)track->open.count,
			.is_mark = event->kind == CAPTURE_RANGE_MARK,
			.is_open = event->kind == CAPTURE_RANGE_BEGIN},
		.pid = event->pid,
		.tid = event->lane ? 0 : event->tid,
	};
	int r = builder_keep(builder, event->name, &raw.range.name);

	r = r ?: builder_keep(builder, event->domain, &raw.range.domain);
	r = r ?: builder_keep(builder, event->category, &raw.range.category);
	r = r ?: add_fields(builder, &raw.range, event);
	if (raw.range.is_open)
		r = r ?: array_append(&track->open, (uint32_t)builder->ranges.count);
	return r ?: array_append(&builder->ranges, raw);
}

int builder_visit_range(void *context, const struct capture_range_event *event)
{
	struct model_builder *builder = context;
	struct range_track *track;
	struct model_range *range;
	int r = find_track(builder, event->track, &track);

	if (r < 0)
		return r;
	if (event->kind != CAPTURE_RANGE_END)
		return begin(builder, track, event);
	if (!track->open.count)
		return 0;
	range = &builder->ranges.items[track->open.items[--track->open.count]].range;
	range->end_ns = MAX(event->time_ns, range->start_ns);
	range->is_open = false;
	return add_fields(builder, range, event);
}

/* Of each process: its last sample, and the last of its ranges' begins and ends. */
static int find_last_times(struct model *model, uint64_t **ret_last_ns)
{
	uint64_t *last_ns = calloc(model->processes.count + 1, sizeof(*last_ns));

	if (!last_ns)
		return -ENOMEM;
	array_foreach (&model->samples, sample) {
		uint32_t process = model->threads.items[sample->thread].process;

		last_ns[process] = MAX(last_ns[process], sample->time_ns);
	}
	array_foreach (&model->ranges, range)
		last_ns[range->process] = MAX(last_ns[range->process], range->end_ns);
	*ret_last_ns = last_ns;
	return 0;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct model_range *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	return a->end_ns > b->end_ns ? -1 : a->end_ns < b->end_ns;
}

/* With the window that it began in, at the latest. */
static uint64_t open_end_ns(
	const struct model *model, const struct model_range *range, uint64_t last_ns)
{
	uint32_t window = model_window_at(model, range->start_ns);

	if (window != MODEL_NONE)
		last_ns = MIN(last_ns, model->windows.items[window].end_ns);
	return MAX(range->start_ns, last_ns);
}

/* With a captured call in it, it counts whenever it was. */
static int resolve_range(struct model_builder *builder, const struct raw_range *raw,
	const struct captured_spans *captured)
{
	struct model *model = builder->model;
	struct model_range range = raw->range;
	bool is_chosen = builder_is_chosen(builder, range.start_ns);
	bool is_captures = captured_spans_are_in(captured, raw);
	int r;

	if (!is_chosen && !is_captures)
		return 0;
	range.thread = MODEL_NONE;
	r = builder_process_at(builder, raw->pid, range.start_ns, &range.process);
	if (raw->tid)
		r = r ?: builder_thread(builder, range.process, raw->tid, &range.thread);
	range.is_elsewhere = !is_chosen;
	if (r == 0 && is_captures)
		r = array_append(&model->capture_ranges, range);
	if (r < 0 || !is_chosen)
		return r;
	if (is_captures)
		range.capture_range = (uint32_t)model->capture_ranges.count;
	return array_append(&model->ranges, range);
}

static void end_range(const struct model *model, struct model_range *range, const uint64_t *last_ns)
{
	if (range->is_open)
		range->end_ns = open_end_ns(model, range, last_ns[range->process]);
}

int builder_resolve_ranges(struct model_builder *builder)
{
	struct model *model = builder->model;
	struct captured_spans captured;
	uint64_t *last_ns;
	int r = captured_spans_init(&captured, model);

	r = r ?: array_reserve(&model->ranges, builder->ranges.count);
	for (size_t i = 0; r == 0 && i < builder->ranges.count; i++)
		r = resolve_range(builder, &builder->ranges.items[i], &captured);
	captured_spans_done(&captured);
	if (r < 0 || !(model->ranges.count + model->capture_ranges.count))
		return r;
	r = find_last_times(model, &last_ns);
	if (r < 0)
		return r;
	array_foreach (&model->ranges, range)
		end_range(model, range, last_ns);
	array_foreach (&model->capture_ranges, range)
		end_range(model, range, last_ns);
	free(last_ns);
	if (model->ranges.count)
		qsort(model->ranges.items, model->ranges.count, sizeof(*model->ranges.items),
			compare_ranges);
	return 0;
}
