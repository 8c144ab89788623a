/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/writer/trace.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/fields.h"
#include "capture/protobuf.h"
#include "capture/row_state.h"
#include "capture/writer/arguments.h"
#include "capture/writer/messages.h"
#include "capture/writer/state.h"

/* Readers do not follow more sequences than some 65,000. */
#define MAX_SEQUENCES 60000
enum text_table { TEXT_NAME, TEXT_CATEGORY, TEXT_ANNOTATION, TEXT_SPECIFICATION, TEXT_TABLE_MAX };

/* Which iid a string has on a sequence: tables are not emptied when a sequence begins. */
struct text_iid {
	uint32_t sequence, iid;
};

struct capture_trace_writer {
	struct capture_writer *writer;
	const struct intern *strings;
	uint64_t begin_ns, unit_ns;
	/* Event ids are the one base and the correlation, or the other and a count. */
	uint64_t event_id_base, uncorrelated_base, uncorrelated_count;
	struct text_iid *iids[TEXT_TABLE_MAX]; /* by string */
	uint32_t iid_counts[TEXT_TABLE_MAX];
	struct strbuf pending; /* interned data for the next packet */
	struct row_state state;
	uint64_t argument_names; /* ROW_BIT()s of those that the sequence has */
	/* The sequence that is being written; 0: none. */
	uint32_t sequence;
	bool is_long;
	uint64_t last_ns; /* of a long track's clock */
	struct capture_trace_track track;
	uint64_t queue_iid, lane_count;
	struct map_u64 contexts; /* pid → the sequence that knows it */
};

static void put_nonzero(struct strbuf *out, uint32_t number, uint64_t value)
{
	if (value)
		pb_put_u64(out, number, value);
}

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

static uint64_t put_interned(
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

static uint64_t text_iid(struct capture_trace_writer *trace, enum text_table table, uint32_t string)
{
	struct text_iid *known = &trace->iids[table][string];

	if (known->sequence != trace->sequence)
		*known = (struct text_iid){
			.sequence = trace->sequence,
			.iid = (uint32_t)put_interned(
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

/* Tracks and lanes are told apart from those of other captures, too. */
static uint64_t lane_uuid(const struct capture_trace_writer *trace, uint64_t lane)
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

static void name_track(const struct capture_trace_track *track, struct strbuf *out)
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
static int describe_lane(struct capture_trace_writer *trace, uint64_t lane)
{
	const struct capture_trace_track *track = &trace->track;
	bool is_thread = !track->is_device && is_system_id(track->pid) && is_system_id(track->tid);
	struct strbuf *packet = writer_begin_packet(trace->writer);
	size_t begin = pb_begin(packet, PACKET_TRACK_DESCRIPTOR);

	pb_put_u64(packet, TRACK_UUID, lane_uuid(trace, lane));
	if (is_thread && lane == 0) {
		put_thread_of_trace(packet, track);
	} else {
		_cleanup_strbuf_ struct strbuf name = {0};

		if (is_thread)
			pb_put_u64(packet, TRACK_PARENT, lane_uuid(trace, 0));
		name_track(track, &name);
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
	pb_put_u64(packet, EVENT_DEFAULT_TRACK, lane_uuid(trace, 0));
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
		result = describe_lane(trace, 0);
	if (result == 0)
		result = put_defaults_of_track(trace, is_new);
	trace->queue_iid = 0;
	return result;
}

/* ---- rows ---- */

static void put_row_value(
	struct capture_trace_writer *trace, struct strbuf *packet, unsigned field, uint64_t value)
{
	struct row_state *state = &trace->state;
	uint64_t step = value - state->previous[field];

	state->previous[field] = value;
	switch (row_coding(field)) {
	case ROW_CODING_TEXT:
		if (step)
			pb_put_u64(
				packet, field, text_iid(trace, TEXT_ANNOTATION, (uint32_t)value));
		break;
	case ROW_CODING_NEXT:
		if (step != 1)
			pb_put_u64(packet, field, zigzag(step));
		break;
	case ROW_CODING_STRIDE:
		if (step != state->stride)
			pb_put_u64(packet, field, zigzag(step));
		state->stride = step;
		break;
	default:
		if (step)
			pb_put_u64(packet, field, zigzag(step));
	}
}

/* What differs from the row before; nothing at all where that says everything. */
static void put_row_fields(struct capture_trace_writer *trace, struct strbuf *packet,
	uint32_t number, const struct capture_trace_row *row, uint64_t layout_key)
{
	struct row_state *state = &trace->state;
	size_t before = packet->length, begin = pb_begin(packet, number);
	uint64_t layout = 0;

	map_u64_get(&state->layouts, layout_key, &layout);
	if (layout != row->layout) {
		pb_put_u64(packet, ROW_LAYOUT, layout ^ row->layout);
		if (map_u64_set(&state->layouts, layout_key, row->layout) < 0)
			packet->status = -ENOMEM;
	}
	if (row->kind == CAPTURE_ROW_STAGE && row->category != state->category) {
		pb_put_u64(packet, ROW_CATEGORY, text_iid(trace, TEXT_ANNOTATION, row->category));
		state->category = row->category;
	}
	layout = row->layout & ROW_VALUES;
	for (; layout; layout &= layout - 1) {
		unsigned field = (unsigned)__builtin_ctzll(layout);

		put_row_value(trace, packet, field, row->values[field]);
	}
	if (strbuf_status(packet) == 0 && packet->length == begin)
		pb_cut(packet, before);
	else
		pb_end(packet, begin);
}

/* ---- for viewers, where they are asked for ---- */

/* The iid of an argument's name is its field's number. */
static void put_argument_name(struct capture_trace_writer *trace, unsigned field)
{
	size_t begin;

	if (trace->argument_names & ROW_BIT(field))
		return;
	trace->argument_names |= ROW_BIT(field);
	begin = pb_begin(&trace->pending, INTERNED_ANNOTATION_NAMES);
	pb_put_u64(&trace->pending, STRING_IID, field);
	pb_put_text(&trace->pending, STRING_BYTES, row_argument_name(field));
	pb_end(&trace->pending, begin);
}

/* Of a slice. */
static void put_arguments(struct capture_trace_writer *trace, struct strbuf *packet,
	const struct capture_trace_row *row)
{
	uint64_t fields = trace->writer->row_arguments ? row_arguments(row) : 0;

	for (; fields; fields &= fields - 1) {
		unsigned field = (unsigned)__builtin_ctzll(fields);
		size_t begin = pb_begin(packet, EVENT_ANNOTATION);

		put_argument_name(trace, field);
		pb_put_u64(packet, ANNOTATION_NAME_IID, field);
		if (ROW_TEXTS & ROW_BIT(field))
			pb_put_u64(packet, ANNOTATION_TEXT_IID,
				text_iid(trace, TEXT_ANNOTATION, (uint32_t)row->values[field]));
		else
			pb_put_u64(packet, ANNOTATION_INT, row->values[field]);
		pb_end(packet, begin);
	}
}

/* Of a stage, whose arguments are texts and have no table. */
static void put_extra_data(struct capture_trace_writer *trace, struct strbuf *packet,
	const struct capture_trace_row *row)
{
	uint64_t fields = trace->writer->row_arguments ? row_arguments(row) : 0;

	for (; fields; fields &= fields - 1) {
		unsigned field = (unsigned)__builtin_ctzll(fields);
		size_t begin = pb_begin(packet, STAGE_EXTRA_DATA);
		char number[24];

		snprintf(number, sizeof(number), "%lld", (long long)row->values[field]);
		pb_put_text(packet, EXTRA_DATA_NAME, row_argument_name(field));
		pb_put_text(packet, EXTRA_DATA_VALUE,
			ROW_TEXTS & ROW_BIT(field)
				? intern_get(trace->strings, (uint32_t)row->values[field])
				: number);
		pb_end(packet, begin);
	}
}

/* Where Perfetto draws an arrow from the launch to its work. */
static void put_arrow(struct strbuf *packet, uint64_t event_id)
{
	size_t begin = pb_begin(packet, EVENT_GPU_CORRELATION);

	pb_put_u64(packet, GPU_CORRELATION_SUBMISSIONS, event_id);
	pb_end(packet, begin);
}

/* Arrows of other traces and captures have other ids. */
static void put_flow(const struct capture_trace_writer *trace, struct strbuf *packet,
	uint32_t field, uint64_t id)
{
	if (id)
		pb_put_fixed64(packet, field, hash_u64(trace->event_id_base ^ id));
}

static void put_slice(struct capture_trace_writer *trace, struct strbuf *packet,
	const struct capture_trace_row *row)
{
	uint64_t category = 0;
	size_t begin = pb_begin(packet, PACKET_TRACK_EVENT);

	pb_put_u64(packet, EVENT_TYPE, row->kind);
	if (row->lane)
		pb_put_u64(packet, EVENT_TRACK, lane_uuid(trace, row->lane));
	if (row->kind != CAPTURE_ROW_END) {
		if (row->category) {
			category = text_iid(trace, TEXT_CATEGORY, row->category);
			pb_put_u64(packet, EVENT_CATEGORY_IID, category);
		}
		pb_put_u64(packet, EVENT_NAME_IID, text_iid(trace, TEXT_NAME, row->name));
		put_flow(trace, packet, EVENT_FLOW, row->flow);
		put_flow(trace, packet, EVENT_TERMINATING_FLOW, row->ended_flow);
		if (row->launches)
			put_arrow(packet, trace->event_id_base + row->values[ROW_CORRELATION]);
		put_arguments(trace, packet, row);
	}
	pb_end(packet, begin);
	/* Not in the event: Perfetto would show the differences as its arguments. */
	if (row->kind != CAPTURE_ROW_END)
		put_row_fields(trace, packet, PACKET_SONDE_TRACE_ROW, row, category);
}

static void put_sizes(struct strbuf *packet, uint32_t number, const uint64_t sizes[3])
{
	size_t begin = pb_begin(packet, number);

	for (unsigned i = 0; i < 3; i++)
		put_nonzero(packet, DIMENSION_X + i, sizes[i]);
	pb_end(packet, begin);
}

static uint64_t queue_iid(struct capture_trace_writer *trace)
{
	_cleanup_strbuf_ struct strbuf name = {0};

	if (!trace->queue_iid) {
		name_track(&trace->track, &name);
		trace->queue_iid = put_interned(trace, TEXT_SPECIFICATION, strbuf_cstr(&name));
		strbuf_inherit_status(&trace->pending, &name);
	}
	return trace->queue_iid;
}

static uint64_t event_id(struct capture_trace_writer *trace, const struct capture_trace_row *row)
{
	return row->layout & ROW_BIT(ROW_CORRELATION)
		       ? trace->event_id_base + row->values[ROW_CORRELATION]
		       : trace->uncorrelated_base + trace->uncorrelated_count++;
}

/* The stage's process. */
static void put_context(struct capture_trace_writer *trace, struct strbuf *packet, uint32_t pid)
{
	uint64_t known = 0;
	size_t begin;

	if (!pid)
		return;
	pb_put_u64(packet, STAGE_CONTEXT, pid);
	if (map_u64_get(&trace->contexts, pid, &known) && known == trace->sequence)
		return;
	if (map_u64_set(&trace->contexts, pid, trace->sequence) < 0)
		packet->status = -ENOMEM;
	begin = pb_begin(&trace->pending, INTERNED_CONTEXTS);
	pb_put_u64(&trace->pending, CONTEXT_IID, pid);
	pb_put_u64(&trace->pending, CONTEXT_PID, pid);
	pb_end(&trace->pending, begin);
}

static void put_stage(struct capture_trace_writer *trace, struct strbuf *packet,
	const struct capture_trace_row *row)
{
	struct capture_trace_row rest = *row;
	size_t stage = pb_begin(packet, PACKET_GPU_STAGE), launch;
	const uint64_t *grid = row->values + ROW_GRID, *block = row->values + ROW_BLOCK;

	rest.layout &= ~(ROW_BIT(ROW_CORRELATION) | ROW_GRID_BITS | ROW_BLOCK_BITS);
	pb_put_u64(packet, STAGE_EVENT_ID, event_id(trace, row));
	pb_put_u64(packet, STAGE_DURATION, row->duration_ns);
	put_context(trace, packet, row->pid);
	if (row->layout & ROW_BIT(ROW_DEVICE))
		pb_put_u64(packet, STAGE_GPU, (uint32_t)row->values[ROW_DEVICE]);
	pb_put_u64(packet, STAGE_QUEUE_IID, queue_iid(trace));
	pb_put_u64(packet, STAGE_NAME_IID, text_iid(trace, TEXT_SPECIFICATION, row->name));
	if (row->layout & (ROW_GRID_BITS | ROW_BLOCK_BITS)) {
		launch = pb_begin(packet, STAGE_LAUNCH);
		if (row->layout & ROW_GRID_BITS)
			put_sizes(packet, STAGE_GRID, grid);
		if (row->layout & ROW_BLOCK_BITS)
			put_sizes(packet, STAGE_GROUP, block);
		pb_end(packet, launch);
	}
	put_extra_data(trace, packet, row);
	pb_end(packet, stage);
	put_row_fields(trace, packet, PACKET_SONDE_TRACE_ROW, &rest, ROW_STAGES);
}

static uint64_t timestamp(struct capture_trace_writer *trace, uint64_t time_ns)
{
	uint64_t reading = (time_ns - trace->last_ns) / trace->unit_ns;

	if (!trace->is_long)
		return time_ns;
	trace->last_ns = time_ns;
	return reading;
}

int capture_trace_row(struct capture_trace_writer *trace, const struct capture_trace_row *row)
{
	struct strbuf *packet = &trace->writer->output.packets;
	int result = 0;

	for (; result == 0 && row->lane >= trace->lane_count; trace->lane_count++)
		result = describe_lane(trace, trace->lane_count);
	if (result < 0)
		return result;
	output_begin_packet(&trace->writer->output);
	pb_put_u64(packet, PACKET_TIMESTAMP, timestamp(trace, row->time_ns));
	pb_put_u64(packet, PACKET_SEQUENCE_ID, trace->sequence);
	if (row->kind == CAPTURE_ROW_STAGE)
		put_stage(trace, packet, row);
	else
		put_slice(trace, packet, row);
	/* Fields of a message may stand in any order: what was just interned comes last. */
	if (trace->pending.length) {
		strbuf_inherit_status(packet, &trace->pending);
		pb_put_bytes(
			packet, PACKET_INTERNED_DATA, trace->pending.data, trace->pending.length);
		strbuf_clear(&trace->pending);
	}
	return writer_end_packet(trace->writer);
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
