/* SPDX-License-Identifier: Apache-2.0 */
/* Writing windows and steps, and the slices that viewers show of them. */
#include <stdio.h>

#include "capture/writer/messages.h"
#include "capture/writer/state.h"

/* What tracks of processes' steps, and the one of windows, are distinguished from others by. */
#define STEPS_TRACK   "sonde steps"
#define WINDOWS_TRACK "sonde windows"

uint64_t writer_named_track(const struct capture_writer *writer, const char *name, uint32_t number)
{
	const uint32_t key[] = {writer->sequence_id, number};

	return hash_bytes(name, strlen(name), hash_bytes(key, sizeof(key), 0)) | 1ULL << 63;
}

int writer_describe_track(
	struct capture_writer *writer, uint64_t uuid, uint64_t parent, const char *name)
{
	int r = writer_is_new_track(writer, uuid);

	if (r <= 0)
		return r;
	put_repeating_track(writer_begin_packet(writer), uuid, parent, name);
	return writer_end_packet(writer);
}

static int end_slice(struct capture_writer *writer, uint64_t track, uint64_t time_ns)
{
	put_slice_end(writer_begin_timed_packet(writer, time_ns), track);
	return writer_end_timed_packet(writer);
}

/* A step that began in a window ends with it, at the latest. */
static uint64_t end_of_step(const struct capture_writer *writer, uint64_t begin_ns, uint64_t end_ns)
{
	bool is_in = begin_ns >= writer->window_begin_ns && begin_ns < writer->window_end_ns;

	return is_in ? MIN(end_ns, writer->window_end_ns) : end_ns;
}

/* Steps are written after their window's end, too: their slices end when nothing more can come. */
int writer_end_steps(struct capture_writer *writer)
{
	size_t position = 0;
	uint64_t track, begin_ns;
	int result = 0;

	while (result == 0 && map_u64_next(&writer->open_steps, &position, &track, &begin_ns)) {
		uint64_t end_ns = end_of_step(writer, begin_ns, UINT64_MAX);

		if (end_ns == UINT64_MAX && writer->end_time_ns >= begin_ns)
			end_ns = writer->end_time_ns;
		if (end_ns != UINT64_MAX)
			result = end_slice(writer, track, end_ns);
	}
	map_u64_clear(&writer->open_steps);
	return result;
}

static int intern_window_name(
	struct capture_writer *writer, const struct capture_window *window, uint64_t *ret_iid)
{
	char name[32];

	snprintf(name, sizeof(name), "window %u", window->number);
	return interning_event_name(&writer->interning,
		window->label && *window->label ? window->label : name, ret_iid);
}

static int begin_window_slice(
	struct capture_writer *writer, const struct capture_window *window, uint64_t track)
{
	uint64_t name = 0;
	int result = writer_describe_track(writer, track, 0, "Windows");

	if (result == 0)
		result = intern_window_name(writer, window, &name);
	if (result < 0)
		return result;
	put_slice_begin(writer_begin_timed_packet(writer, window->begin_ns), track, name, NULL);
	return writer_end_timed_packet(writer);
}

int capture_writer_window(struct capture_writer *writer, const struct capture_window *window)
{
	uint64_t track = writer_named_track(writer, WINDOWS_TRACK, 0);
	int result;

	if (writer->visitor)
		return writer->visitor->window
			       ? writer->visitor->window(writer->visitor_context, window)
			       : 0;
	result = writer_start(writer);
	if (writer->open_window != window->number) {
		if (writer->window_end_ns)
			if (result == 0)
				result = writer_end_steps(writer);
		if (result == 0)
			result = begin_window_slice(writer, window, track);
	}
	writer->open_window = window->end_ns ? 0 : window->number;
	if (window->end_ns) {
		writer->window_begin_ns = window->begin_ns;
		writer->window_end_ns = window->end_ns;
		if (result == 0)
			result = end_slice(writer, track, window->end_ns);
	}
	if (result < 0)
		return result;
	put_window(writer_begin_packet(writer), window);
	return writer_end_packet(writer);
}

int capture_writer_step(struct capture_writer *writer, const struct capture_step *step)
{
	uint64_t track = writer_named_track(writer, STEPS_TRACK, step->pid), name = 0, number = 0;
	uint64_t begin_ns;
	int result;

	if (writer->visitor)
		return writer->visitor->step ? writer->visitor->step(writer->visitor_context, step)
					     : 0;
	result = writer_start(writer);
	if (result == 0)
		result = writer_describe_track(
			writer, track, writer_track_uuid(writer, step->pid, false), "Steps");
	if (map_u64_get(&writer->open_steps, track, &begin_ns))
		if (result == 0)
			result = end_slice(
				writer, track, end_of_step(writer, begin_ns, step->time_ns));
	if (result == 0)
		result = map_u64_set(&writer->open_steps, track, step->time_ns);
	if (result == 0)
		result = interning_event_name(&writer->interning, step->name, &name);
	if (result == 0)
		result = interning_annotation_name(&writer->interning, "number", &number);
	if (result < 0)
		return result;
	put_step(writer_begin_timed_packet(writer, step->time_ns), step, name, number, track);
	return writer_end_timed_packet(writer);
}
