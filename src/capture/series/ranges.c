/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges that are open where a window ends: they end with it, and begin anew in the next one. */
#include "capture/series/state.h"

/* Open in one track; what there is more of is not cut. */
#define MOST_OPEN 512

/* The begin of a range that is open; its texts follow it. */
struct open_range {
	struct capture_range_event event;
	struct capture_range_field fields[];
};

struct series_track {
	uint64_t part;   /* the window that its last event was written to */
	uint64_t beyond; /* open ones that are not kept */
	ARRAY_OF(struct open_range *) open;
};

static void track_free(struct series_track *track)
{
	array_foreach (&track->open, range)
		free(*range);
	array_done(&track->open);
	free(track);
}

void series_ranges_done(struct capture_series *series)
{
	uint64_t key, value;
	size_t position = 0;

	while (map_u64_next(&series->tracks, &position, &key, &value))
		track_free((struct series_track *)(uintptr_t)value);
	map_u64_done(&series->tracks);
}

static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static const char *keep_text(char **room, const char *text)
{
	size_t size = text_size(text);
	char *kept = *room;

	if (!text)
		return NULL;
	memcpy(kept, text, size);
	*room += size;
	return kept;
}

static struct open_range *keep_range(const struct capture_range_event *event)
{
	size_t size = sizeof(struct open_range) + event->field_count * sizeof(event->fields[0]) +
		      text_size(event->name) + text_size(event->domain) +
		      text_size(event->category);
	struct open_range *range;
	char *room;

	for (uint32_t i = 0; i < event->field_count; i++)
		size += text_size(event->fields[i].name) + text_size(event->fields[i].text);
	range = malloc(size);
	if (!range)
		return NULL;
	range->event = *event;
	range->event.fields = range->fields;
	room = (char *)(range->fields + event->field_count);
	range->event.name = keep_text(&room, event->name);
	range->event.domain = keep_text(&room, event->domain);
	range->event.category = keep_text(&room, event->category);
	for (uint32_t i = 0; i < event->field_count; i++) {
		range->fields[i] = event->fields[i];
		range->fields[i].name = keep_text(&room, event->fields[i].name);
		range->fields[i].text = keep_text(&room, event->fields[i].text);
	}
	return range;
}

/* All of a track's open ranges end in one part, or begin in it. */
static int write_open(struct capture_series *series, struct series_part *part,
	const struct series_track *track, bool is_begin)
{
	int r = 0;

	for (size_t i = 0; r == 0 && part->writer && i < track->open.count; i++) {
		size_t at = is_begin ? i : track->open.count - 1 - i;
		struct capture_range_event event = track->open.items[at]->event;

		if (!is_begin) {
			event.kind = CAPTURE_RANGE_END;
			event.name = event.category = "";
			event.field_count = 0;
		}
		event.time_ns = is_begin ? part->begin_ns : part->end_ns - 1;
		r = series_tell_thread(series, part, event.pid, event.lane ? 0 : event.tid);
		if (r == 0)
			r = capture_writer_range(part->writer, &event);
	}
	return r;
}

/* Its open ranges go on in this part. */
static int follow_to(
	struct capture_series *series, struct series_track *track, struct series_part *part)
{
	int r = 0;

	for_parts (series, passed) {
		if (passed->number < track->part || passed->number > part->number)
			continue;
		if (r == 0 && passed->number > track->part)
			r = write_open(series, passed, track, true);
		if (r == 0 && passed->number < part->number)
			r = write_open(series, passed, track, false);
	}
	track->part = part->number;
	return r;
}

static int make_track(struct capture_series *series, uint64_t key, struct series_part *part,
	struct series_track **ret_track)
{
	struct series_track *track = calloc(1, sizeof(*track));
	int r;

	if (!track)
		return -ENOMEM;
	track->part = part->number;
	r = map_u64_set(&series->tracks, key, (uintptr_t)track);
	if (r < 0)
		track_free(track);
	else
		*ret_track = track;
	return r;
}

static int note_event(struct capture_series *series, struct series_track *track,
	const struct capture_range_event *event)
{
	struct open_range *range;
	int r;

	if (event->kind == CAPTURE_RANGE_END && track->beyond) {
		track->beyond--;
		return 0;
	}
	if (event->kind == CAPTURE_RANGE_END) {
		free(track->open.items[--track->open.count]);
		if (!track->open.count) {
			map_u64_remove(&series->tracks, event->track);
			track_free(track);
		}
		return 0;
	}
	if (event->kind != CAPTURE_RANGE_BEGIN)
		return 0;
	if (track->open.count >= MOST_OPEN) {
		track->beyond++;
		return 0;
	}
	range = keep_range(event);
	if (!range)
		return -ENOMEM;
	r = array_append(&track->open, range);
	if (r < 0)
		free(range);
	return r;
}

int series_range(struct capture_series *series, const struct capture_range_event *event)
{
	struct capture_range_event out = *event;
	struct series_part *part = series_part_from(series, &out.time_ns);
	struct series_track *track = NULL;
	uint64_t known;
	int r = 0;

	if (!part)
		return 0;
	if (map_u64_get(&series->tracks, event->track, &known))
		track = (struct series_track *)(uintptr_t)known;
	else if (event->kind == CAPTURE_RANGE_BEGIN)
		r = make_track(series, event->track, part, &track);
	else if (event->kind == CAPTURE_RANGE_END)
		return 0; /* its begin is in no window: it was late */
	if (r == 0 && track && track->part < part->number)
		r = follow_to(series, track, part);
	if (r == 0 && series_part_takes(part)) {
		r = series_tell_thread(series, part, out.pid, out.lane ? 0 : out.tid);
		if (r == 0)
			r = capture_writer_range(part->writer, &out);
	}
	return r < 0 || !track ? r : note_event(series, track, event);
}

int series_cut_ranges(struct capture_series *series, struct series_part *part)
{
	struct series_part *next = series->parts.count > 1 ? series->parts.items[1] : NULL;
	uint64_t key, value;
	size_t position = 0;
	int r = 0;

	while (r == 0 && map_u64_next(&series->tracks, &position, &key, &value)) {
		struct series_track *track = (struct series_track *)(uintptr_t)value;

		if (track->part > part->number)
			continue;
		r = next ? follow_to(series, track, next) : write_open(series, part, track, false);
	}
	return r;
}
