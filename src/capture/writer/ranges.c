/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges and marks: TrackEvents on tracks that are described where they are first used. */
#include <assert.h>
#include <string.h>

#include "capture/fields.h"
#include "capture/writer/messages.h"
#include "capture/writer/state.h"

/* What the default domain is called in a capture. */
#define DEFAULT_DOMAIN "NVTX"

/* The thread's own track is the default domain's; others have their own. */
static uint64_t range_track(
	const struct capture_writer *writer, const struct capture_range_event *event)
{
	const uint32_t key[] = {
		writer->sequence_id, event->pid, event->lane ? 0 : event->tid, event->lane};

	if (!event->lane && !*event->domain)
		return writer_track_uuid(writer, event->tid, true);
	return hash_bytes(event->domain, event->lane ? 0 : strlen(event->domain),
		       hash_bytes(key, sizeof(key), 0)) |
	       1ULL << 63;
}

int writer_describe_process(struct capture_writer *writer, uint32_t pid)
{
	const struct capture_process process = {.pid = pid};
	uint64_t uuid = writer_track_uuid(writer, pid, false);
	int r = writer_is_new_track(writer, uuid);

	if (r <= 0)
		return r;
	put_process(writer_begin_packet(writer), &process, uuid);
	return writer_end_packet(writer);
}

int writer_describe_thread(struct capture_writer *writer, uint32_t pid, uint32_t tid)
{
	const struct capture_thread thread = {.pid = pid, .tid = tid};
	uint64_t uuid = writer_track_uuid(writer, tid, true);
	int r = writer_is_new_track(writer, uuid);

	if (r <= 0)
		return r;
	put_thread(writer_begin_packet(writer), &thread, uuid);
	return writer_end_packet(writer);
}

static int describe_child(
	struct capture_writer *writer, uint64_t uuid, uint64_t parent, const char *name)
{
	int r = writer_is_new_track(writer, uuid);

	if (r <= 0)
		return r;
	put_child_track(writer_begin_packet(writer), uuid, parent, name);
	return writer_end_packet(writer);
}

static int intern_range(struct capture_writer *writer, const struct capture_range_event *event,
	struct range_event_names *names)
{
	struct interning *interning = &writer->interning;
	int result = 0;

	*names = (struct range_event_names){0};
	if (event->kind != CAPTURE_RANGE_END) {
		const char *domain = *event->domain ? event->domain : DEFAULT_DOMAIN;

		result = interning_event_name(interning, event->name, &names->name);
		if (result == 0)
			result = interning_event_category(interning, domain, &names->domain);
		if (*event->category)
			if (result == 0)
				result = interning_event_category(
					interning, event->category, &names->category);
	}
	for (uint32_t i = 0; result == 0 && i < event->field_count; i++)
		result = interning_annotation_name(
			interning, event->fields[i].name, &names->fields[i]);
	return result;
}

int capture_writer_range(struct capture_writer *writer, const struct capture_range_event *event)
{
	struct capture_range_event out = *event;
	struct range_event_names names;
	uint64_t parent;
	int result;

	assert(event->field_count <= WIRE_RANGE_MAX_FIELDS);
	out.track = range_track(writer, event);
	if (writer->visitor)
		return writer->visitor->range
			       ? writer->visitor->range(writer->visitor_context, &out)
			       : 0;
	parent = event->lane ? writer_track_uuid(writer, event->pid, false)
			     : writer_track_uuid(writer, event->tid, true);
	result = writer_start(writer);
	if (result == 0)
		result = event->lane ? writer_describe_process(writer, event->pid)
				     : writer_describe_thread(writer, event->pid, event->tid);
	if (out.track != parent)
		if (result == 0)
			result = describe_child(writer, out.track, parent,
				event->lane ? "Ranges of the process" : event->domain);
	if (result == 0)
		result = intern_range(writer, event, &names);
	if (result < 0)
		return result;
	put_range_event(writer_begin_timed_packet(writer, out.time_ns), &out, &names);
	return writer_end_timed_packet(writer);
}
