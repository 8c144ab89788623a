/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/writer/trace.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/fields.h"
#include "capture/writer/arguments.h"
#include "capture/writer/messages.h"
#include "capture/writer/trace_state.h"

/* Readers do not follow more sequences than some 65,000. */
#define MAX_SEQUENCES 60000

static void put_signed(struct strbuf *out, uint32_t number, int64_t value)
{
	if (value != INT64_MIN)
		pb_put_u64(out, number, zigzag((uint64_t)value));
}

static void put_some_text(struct strbuf *out, uint32_t number, const char *text)
{
	if (text && *text)
		pb_put_text(out, number, text);
}

/* ---- interning ---- */

static const uint32_t text_lists[TEXT_TABLE_MAX] = {
	[TEXT_NAME] = INTERNED_EVENT_NAMES,
	[TEXT_CATEGORY] = INTERNED_EVENT_CATEGORIES,
	[TEXT_ANNOTATION] = INTERNED_ANNOTATION_TEXTS,
	[TEXT_SPECIFICATION] = INTERNED_SPECIFICATIONS,
};

uint64_t trace_put_interned(
	struct capture_trace_writer *trace, enum text_table table, const char *text)
{
	size_t begin = pb_begin(&trace->pending, text_lists[table]);
	uint64_t iid = ++trace->iid_counts[table];

	pb_put_u64(&trace->pending, STRING_IID, iid);
	pb_put_text(&trace->pending, STRING_BYTES, text);
	if (table == TEXT_SPECIFICATION)
		pb_put_u64(&trace->pending, SPECIFICATION_CATEGORY, CATEGORY_COMPUTE);
	pb_end(&trace->pending, begin);
	return iid;
}

uint64_t trace_text_iid(struct capture_trace_writer *trace, enum text_table table, uint32_t string)
{
	struct text_iid *known = &trace->iids[table][string];

	if (known->sequence != trace->sequence)
		*known = (struct text_iid){
			.sequence = trace->sequence,
			.iid = (uint32_t)trace_put_interned(
				trace, table, intern_get(trace->strings, string)),
		};
	return known->iid;
}

/* ---- the trace ---- */

static void put_categories(struct strbuf *packet, const struct capture_trace *about)
{
	for (size_t i = 0; i < about->category_count; i++) {
		size_t begin = pb_begin(packet, TRACE_CATEGORIES);

		put_some_text(packet, TRACE_CATEGORY_NAME, about->categories[i].name);
		put_nonzero(packet, TRACE_CATEGORY_KIND, about->categories[i].kind);
		pb_end(packet, begin);
	}
}

static int put_trace(struct capture_trace_writer *trace, const struct capture_trace *about)
{
	struct strbuf *packet = writer_begin_packet(trace->writer);
	size_t begin = pb_begin(packet, PACKET_SONDE_TRACE);

	put_some_text(packet, TRACE_PATH, about->path);
	pb_put_u64(packet, TRACE_ORIGIN, about->origin_ns);
	put_nonzero(packet, TRACE_BASE, about->base_ns);
	if (about->rank != UINT32_MAX)
		pb_put_u64(packet, TRACE_RANK, about->rank);
	put_nonzero(packet, TRACE_WORLD_SIZE, about->world_size);
	put_some_text(packet, TRACE_BACKEND, about->backend);
	put_some_text(packet, TRACE_HEADER, about->header);
	put_nonzero(packet, TRACE_HAS_FRACTIONS, about->has_fractions);
	put_nonzero(packet, TRACE_ARGUMENTS_KEPT, about->arguments_kept);
	put_nonzero(packet, TRACE_SKIPPED_EVENTS, about->damage.skipped_events);
	put_nonzero(packet, TRACE_SKIPPED_BYTES, about->damage.skipped_bytes);
	put_nonzero(packet, TRACE_MENDED_EVENTS, about->damage.mended_events);
	put_nonzero(packet, TRACE_TRUNCATED, about->damage.truncated);
	put_nonzero(packet, TRACE_REPAIRED_TIMES, about->damage.repaired_times);
	put_nonzero(packet, TRACE_UNENDED_EVENTS, about->damage.unended_events);
	pb_put_u64(packet, TRACE_ROWS, about->row_count);
	pb_put_u64(packet, TRACE_EVENT_ID_BASE, trace->event_id_base);
	pb_put_u64(packet, TRACE_UNCORRELATED_BASE, trace->uncorrelated_base);
	put_categories(packet, about);
	pb_end(packet, begin);
	return writer_end_packet(trace->writer);
}

/*
 * Perfetto draws arrows by event ids, over all traces of a file and all captures that were joined.
 * 48 bits take seven bytes.
 */
static uint64_t id_base(const struct capture_writer *writer, uint64_t purpose)
{
	const uint64_t key[] = {writer->sequence_id, writer->trace_count, purpose};

	return hash_bytes(key, sizeof(key), 0) >> 16 | 1;
}

static int allocate_iids(struct capture_trace_writer *trace)
{
	for (unsigned i = 0; i < TEXT_TABLE_MAX; i++) {
		trace->iids[i] = calloc(trace->strings->entries.count + 1, sizeof(*trace->iids[i]));
		if (!trace->iids[i])
			return -ENOMEM;
	}
	return 0;
}

int capture_trace_begin(struct capture_trace_writer **ret_trace, struct capture_writer *writer,
	const struct capture_trace *about, const struct intern *strings)
{
	struct capture_trace_writer *trace = calloc(1, sizeof(*trace));
	int result = trace ? writer_start(writer) : -ENOMEM;

	assert(!writer->visitor);
	if (result == 0) {
		trace->writer = writer;
		trace->strings = strings;
		trace->begin_ns = about->begin_ns;
		trace->unit_ns = about->has_fractions ? 1 : NS_PER_US;
		trace->event_id_base = id_base(writer, 0);
		trace->uncorrelated_base = id_base(writer, 1);
		result = allocate_iids(trace);
	}
	if (result == 0)
		result = put_trace(trace, about);
	if (result < 0) {
		capture_trace_free(trace);
		return result;
	}
	writer->trace_count++;
	*ret_trace = trace;
	return 0;
}

struct capture_trace_writer *capture_trace_free(struct capture_trace_writer *trace)
{
	if (!trace)
		return NULL;
	for (unsigned i = 0; i < TEXT_TABLE_MAX; i++)
		free(trace->iids[i]);
	map_u64_done(&trace->contexts);
	strbuf_done(&trace->pending);
	row_state_done(&trace->state);
	free(trace);
	return NULL;
}

/* ---- tracks ---- */

/* Tracks and lanes are distinguished from those of other captures, too. */
uint64_t trace_lane_uuid(const struct capture_trace_writer *trace, uint64_t lane)
{
	const uint64_t key[] = {
		trace->writer->sequence_id, trace->writer->trace_count, trace->track.number, lane};

	return hash_bytes(key, sizeof(key), 0) | 1ULL << 63;
}

static bool is_system_id(int64_t number)
{
	return number > 0 && number <= INT32_MAX;
}

static void put_thread_of_trace(struct strbuf *packet, const struct capture_trace_track *track)
{
	size_t begin = pb_begin(packet, TRACK_THREAD);

	pb_put_u64(packet, THREAD_PID, (uint64_t)track->pid);
	pb_put_u64(packet, THREAD_TID, (uint64_t)track->tid);
	put_some_text(packet, THREAD_NAME, track->thread_name);
	pb_end(packet, begin);
}

void trace_name_track(const struct capture_trace_track *track, struct strbuf *out)
{
	const char *process = *track->process_labels ? track->process_labels : track->process_name;

	if (*process)
		strbuf_addf(out, "%s, ", process);
	if (*track->thread_name)
		strbuf_add(out, track->thread_name);
	else if (track->tid != INT64_MIN)
		strbuf_addf(out, track->is_device ? "stream %lld" : "thread %lld",
			(long long)track->tid);
	else
		strbuf_add(out, track->tid_text);
}

/* A thread has the operating system's ids; everything else is a track with a name. */
int trace_describe_lane(struct capture_trace_writer *trace, uint64_t lane)
{
	const struct capture_trace_track *track = &trace->track;
	bool is_thread = !track->is_device && is_system_id(track->pid) && is_system_id(track->tid);
	struct strbuf *packet = writer_begin_packet(trace->writer);
	size_t begin = pb_begin(packet, PACKET_TRACK_DESCRIPTOR);

	pb_put_u64(packet, TRACK_UUID, trace_lane_uuid(trace, lane));
	if (is_thread && lane == 0) {
		put_thread_of_trace(packet, track);
	} else {
		_cleanup_strbuf_ struct strbuf name = {0};

		if (is_thread)
			pb_put_u64(packet, TRACK_PARENT, trace_lane_uuid(trace, 0));
		trace_name_track(track, &name);
		strbuf_inherit_status(packet, &name);
		pb_put_text(packet, TRACK_NAME, strbuf_cstr(&name));
	}
	pb_put_u64(packet, TRACK_ROW_TRACK, (uint64_t)track->number + 1);
	pb_end(packet, begin);
	return writer_end_packet(trace->writer);
}

static int put_track(struct capture_trace_writer *trace)
{
	const struct capture_trace_track *track = &trace->track;
	struct strbuf *packet = writer_begin_packet(trace->writer);
	size_t begin = pb_begin(packet, PACKET_SONDE_TRACE_TRACK);

	pb_put_u64(packet, TRACE_TRACK_NUMBER, track->number);
	put_signed(packet, TRACE_TRACK_PID, track->pid);
	put_signed(packet, TRACE_TRACK_TID, track->tid);
	put_some_text(packet, TRACE_TRACK_PID_TEXT, track->pid_text);
	put_some_text(packet, TRACE_TRACK_TID_TEXT, track->tid_text);
	put_some_text(packet, TRACE_TRACK_PROCESS_NAME, track->process_name);
	put_some_text(packet, TRACE_TRACK_THREAD_NAME, track->thread_name);
	put_some_text(packet, TRACE_TRACK_PROCESS_LABELS, track->process_labels);
	put_signed(packet, TRACE_TRACK_PROCESS_SORT, track->process_sort);
	put_signed(packet, TRACE_TRACK_THREAD_SORT, track->thread_sort);
	put_nonzero(packet, TRACE_TRACK_IS_DEVICE, track->is_device);
	if (track->owner_tid)
		put_signed(packet, TRACE_TRACK_OWNER_TID, track->owner_tid);
	pb_end(packet, begin);
	return writer_end_packet(trace->writer);
}

/* Its process, where that is one of the operating system. */
static int describe_process(struct capture_trace_writer *trace)
{
	const struct capture_trace_track *track = &trace->track;
	const struct capture_process process = {
		.pid = (uint32_t)track->pid,
		.name = *track->process_name ? track->process_name : NULL,
	};
	uint64_t uuid;
	int result;

	if (track->is_device || !is_system_id(track->pid))
		return 0;
	uuid = writer_track_uuid(trace->writer, process.pid, false);
	result = writer_is_new_track(trace->writer, uuid);
	if (result <= 0)
		return result;
	put_process(writer_begin_packet(trace->writer), &process, uuid);
	return writer_end_packet(trace->writer);
}

static void put_row_clock(struct strbuf *packet, uint32_t id, uint64_t reading, uint64_t unit_ns)
{
	size_t clock = pb_begin(packet, SNAPSHOT_CLOCKS);

	pb_put_u64(packet, CLOCK_ENTRY_ID, id);
	pb_put_u64(packet, CLOCK_ENTRY_TIMESTAMP, reading);
	if (id != CLOCK_ID_MONOTONIC) {
		pb_put_u64(packet, CLOCK_ENTRY_INCREMENTAL, true);
		pb_put_u64(packet, CLOCK_ENTRY_UNIT_NS, unit_ns);
	}
	pb_end(packet, clock);
}

/*
 * A moment before all rows, in whole units from them, and after that of the sequence before:
 * Perfetto wants the clocks of a file to go forward.
 */
static uint64_t next_clock_ns(struct capture_trace_writer *trace)
{
	uint64_t *last_ns = &trace->writer->trace_clock_ns;

	*last_ns += 1 + (trace->begin_ns - *last_ns - 1) % trace->unit_ns;
	return *last_ns;
}

/* What the packets of a sequence, or of its next track, have in common. */
static int put_defaults_of_track(struct capture_trace_writer *trace, bool is_new)
{
	struct strbuf *packet = &trace->writer->output.packets;
	uint32_t clock = trace->is_long ? CLOCK_ID_SEQUENCE_FIRST : CLOCK_ID_MONOTONIC;
	size_t defaults, events, snapshot;

	output_begin_packet(&trace->writer->output);
	pb_put_u64(packet, PACKET_SEQUENCE_ID, trace->sequence);
	if (is_new) {
		pb_put_u64(packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED);
		pb_put_u64(packet, PACKET_FIRST_ON_SEQUENCE, true);
	}
	defaults = pb_begin(packet, PACKET_DEFAULTS);
	pb_put_u64(packet, DEFAULTS_TIMESTAMP_CLOCK, clock);
	events = pb_begin(packet, DEFAULTS_TRACK_EVENT);
	pb_put_u64(packet, EVENT_DEFAULT_TRACK, trace_lane_uuid(trace, 0));
	pb_end(packet, events);
	pb_end(packet, defaults);
	if (trace->is_long) {
		trace->last_ns = next_clock_ns(trace);
		snapshot = pb_begin(packet, PACKET_CLOCK_SNAPSHOT);
		put_row_clock(packet, CLOCK_ID_MONOTONIC, trace->last_ns, 1);
		put_row_clock(packet, clock, trace->last_ns / trace->unit_ns, trace->unit_ns);
		pb_end(packet, snapshot);
	}
	return writer_end_packet(trace->writer);
}

/* Empties what is remembered of the sequence before. */
static void begin_sequence(struct capture_trace_writer *trace)
{
	trace->sequence = ++trace->writer->trace_sequences;
	memset(trace->iid_counts, 0, sizeof(trace->iid_counts));
	strbuf_clear(&trace->pending);
	trace->argument_names = 0;
	row_state_clear(&trace->state);
}

int capture_trace_track(
	struct capture_trace_writer *trace, const struct capture_trace_track *track, bool is_long)
{
	bool is_new;
	int result;

	is_long &= trace->writer->trace_sequences < MAX_SEQUENCES;
	is_new = is_long || !trace->sequence || trace->is_long;
	trace->track = *track;
	trace->is_long = is_long;
	trace->lane_count = 1;
	if (is_new)
		begin_sequence(trace);
	result = describe_process(trace);
	if (result == 0)
		result = put_track(trace);
	if (result == 0)
		result = trace_describe_lane(trace, 0);
	if (result == 0)
		result = put_defaults_of_track(trace, is_new);
	trace->queue_iid = 0;
	return result;
}

/* ---- what is of no track ---- */

int capture_trace_flow(struct capture_trace_writer *trace, const struct capture_trace_flow *flow)
{
	struct strbuf *packet = writer_begin_packet(trace->writer);
	size_t begin = pb_begin(packet, PACKET_SONDE_TRACE_FLOW);

	pb_put_u64(packet, TRACE_FLOW_TIME, flow->time_ns);
	pb_put_u64(packet, TRACE_FLOW_ID, flow->id);
	pb_put_u64(packet, TRACE_FLOW_TRACK, flow->track);
	put_some_text(packet, TRACE_FLOW_CATEGORY, flow->category);
	put_nonzero(packet, TRACE_FLOW_IS_END, flow->is_end);
	pb_end(packet, begin);
	return writer_end_packet(trace->writer);
}

int capture_trace_counter(
	struct capture_trace_writer *trace, const struct capture_trace_counter *counter)
{
	struct strbuf *packet = writer_begin_packet(trace->writer);
	size_t begin = pb_begin(packet, PACKET_SONDE_TRACE_COUNTER);
	uint64_t bits;

	memcpy(&bits, &counter->value, sizeof(bits));
	pb_put_u64(packet, TRACE_COUNTER_TIME, counter->time_ns);
	pb_put_u64(packet, TRACE_COUNTER_TRACK, counter->track);
	put_some_text(packet, TRACE_COUNTER_NAME, counter->name);
	put_some_text(packet, TRACE_COUNTER_SERIES, counter->series);
	pb_put_fixed64(packet, TRACE_COUNTER_VALUE, bits);
	put_nonzero(packet, TRACE_COUNTER_DEVICE, counter->device);
	pb_end(packet, begin);
	return writer_end_packet(trace->writer);
}

int capture_trace_group(struct capture_trace_writer *trace, const struct capture_trace_group *group)
{
	struct strbuf *packet = writer_begin_packet(trace->writer);
	size_t begin = pb_begin(packet, PACKET_SONDE_TRACE_GROUP);

	put_some_text(packet, TRACE_GROUP_NAME, group->name);
	put_some_text(packet, TRACE_GROUP_DESCRIPTION, group->description);
	put_some_text(packet, TRACE_GROUP_BACKEND, group->backend);
	put_signed(packet, TRACE_GROUP_SIZE, group->size);
	put_some_text(packet, TRACE_GROUP_RANKS, group->ranks);
	pb_end(packet, begin);
	return writer_end_packet(trace->writer);
}
