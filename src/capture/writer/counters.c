/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of processes: TrackEvents with a value, each counter on a track of its own. */
#include <string.h>

#include "capture/fields.h"
#include "capture/writer/messages.h"
#include "capture/writer/state.h"

static int describe_counter(
	struct capture_writer *writer, uint64_t uuid, const struct capture_counter *counter)
{
	int r = writer_is_new_track(writer, uuid);

	if (r <= 0)
		return r;
	put_counter_track(writer_begin_packet(writer), uuid,
		writer_track_uuid(writer, counter->pid, false), counter->name);
	return writer_end_packet(writer);
}

int capture_writer_counter(struct capture_writer *writer, const struct capture_counter *counter)
{
	uint64_t track, name = 0;
	int r;

	if (writer->visitor)
		return writer->visitor->counter
			       ? writer->visitor->counter(writer->visitor_context, counter)
			       : 0;
	/* Not a name that another track may have. */
	track = hash_bytes(counter->name, strlen(counter->name),
			writer_named_track(writer, "sonde counter", counter->pid)) |
		1ULL << 63;
	r = writer_start(writer);
	if (r == 0)
		r = writer_describe_process(writer, counter->pid);
	if (r == 0)
		r = describe_counter(writer, track, counter);
	if (r == 0)
		r = interning_event_name(&writer->interning, counter->name, &name);
	if (r < 0)
		return r;
	put_counter(writer_begin_timed_packet(writer, counter->time_ns), counter, track, name);
	return writer_end_timed_packet(writer);
}
