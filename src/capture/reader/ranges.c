/* SPDX-License-Identifier: Apache-2.0 */
/* Reading TrackEvents on the tracks of threads and processes: ranges and marks. */
#include <errno.h>
#include <string.h>

#include "capture/fields.h"
#include "capture/reader/state.h"

/* Tracks may lie below one another; a hostile file's in a circle. */
#define MAX_TRACK_DEPTH 16

/* ---- tracks ---- */

/* The ids of a ProcessDescriptor or a ThreadDescriptor. */
static int read_ids(struct pb_bytes message, bool is_thread, struct track *track)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(THREAD_PID)) /* PROCESS_PID, too */
			track->pid = (uint32_t)field.value;
		else if (is_thread && field.tag == PB_VARINT(THREAD_TID))
			track->tid = (uint32_t)field.value;
	}
	return more;
}

int reader_event_track(struct reader *reader, struct pb_bytes descriptor)
{
	struct pb_cursor cursor = pb_cursor(descriptor);
	struct track track = {0};
	uint64_t uuid = 0, known;
	bool is_counter = false;
	struct pb_bytes name = {0};
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_VARINT(TRACK_UUID))
			uuid = field.value;
		else if (field.tag == PB_VARINT(TRACK_PARENT))
			track.parent = field.value;
		else if (field.tag == PB_VARINT(TRACK_REPEATS))
			track.repeats = field.value;
		else if (field.tag == PB_VARINT(TRACK_ROW_TRACK))
			track.trace_track = (uint32_t)field.value;
		else if (field.tag == PB_BYTES(TRACK_NAME))
			name = field.bytes;
		else if (field.tag == PB_BYTES(TRACK_COUNTER))
			is_counter = true;
		else if (field.tag == PB_BYTES(TRACK_PROCESS))
			result = read_ids(field.bytes, false, &track);
		else if (field.tag == PB_BYTES(TRACK_THREAD))
			result = read_ids(field.bytes, true, &track);
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	if (name.length) {
		uint32_t *text = is_counter ? &track.name : &track.title;

		result = reader_string(reader, name, text);
		(*text)++;
	}
	if (result < 0)
		return result;
	if (map_u64_get(&reader->track_index, uuid, &known)) {
		reader->tracks.items[known] = track;
		return 0;
	}
	result = reader_retain(reader, sizeof(track));
	if (result == 0)
		result = map_u64_set(&reader->track_index, uuid, reader->tracks.count);
	if (result == 0)
		result = array_append(&reader->tracks, track);
	return result;
}

/* The thread, or with tid 0 the process, that a track lies below; and the nearest name. */
static bool find_owner(const struct reader *reader, uint64_t uuid, struct track *ret_owner)
{
	uint32_t name = 0;
	uint64_t index;

	for (unsigned i = 0; i < MAX_TRACK_DEPTH; i++) {
		if (!map_u64_get(&reader->track_index, uuid, &index))
			return false;
		*ret_owner = reader->tracks.items[index];
		if (ret_owner->repeats)
			return false;
		name = name ?: ret_owner->name;
		if (ret_owner->pid) {
			ret_owner->name = name;
			return true;
		}
		uuid = ret_owner->parent;
	}
	return false;
}

static const char *track_title(const struct reader *reader, uint64_t uuid)
{
	uint64_t index;
	uint32_t title = map_u64_get(&reader->track_index, uuid, &index)
				 ? reader->tracks.items[index].title
				 : 0;

	return title ? intern_get(&reader->strings, title - 1) : "";
}

/* ---- events ---- */

uint64_t reader_fixed64(struct pb_bytes bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < 8 && i < bytes.length; i++)
		value |= (uint64_t)bytes.at[i] << 8 * i;
	return value;
}

static int take_annotation_field(struct reader *reader, const struct sequence *sequence,
	const struct pb_field *field, struct capture_range_field *out)
{
	switch (field->tag) {
	case PB_VARINT(ANNOTATION_NAME_IID):
		out->name = reader_interned_text(reader, &sequence->annotation_names, field->value);
		return 0;
	case PB_BYTES(ANNOTATION_NAME):
		return reader_text(reader, field->bytes, &out->name);
	case PB_VARINT(ANNOTATION_UINT):
	case PB_VARINT(ANNOTATION_INT):
		out->type =
			field->tag == PB_VARINT(ANNOTATION_INT) ? WIRE_RANGE_I64 : WIRE_RANGE_U64;
		out->value = field->value;
		return 0;
	case PB_FIXED64(ANNOTATION_DOUBLE):
		out->type = WIRE_RANGE_DOUBLE;
		out->value = reader_fixed64(field->bytes);
		return 0;
	case PB_VARINT(ANNOTATION_TEXT_IID):
		out->type = WIRE_RANGE_TEXT;
		out->text = reader_interned_text(reader, &sequence->annotation_texts, field->value);
		return 0;
	case PB_BYTES(ANNOTATION_TEXT):
		out->type = WIRE_RANGE_TEXT;
		return reader_text(reader, field->bytes, &out->text);
	default:
		return 0;
	}
}

/* Numbers and texts; other values are left out. */
static int read_annotation(
	struct reader *reader, const struct sequence *sequence, struct pb_bytes message)
{
	struct capture_range_field out = {.name = "", .text = ""};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0)
		result = take_annotation_field(reader, sequence, &field, &out);
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	if (!out.type || reader->range_fields.count >= WIRE_RANGE_MAX_FIELDS)
		return 0;
	return array_append(&reader->range_fields, out);
}

/* The first category is the domain. */
static void take_category(struct capture_range_event *event, const char *name)
{
	if (!*event->domain)
		event->domain = name;
	else if (!*event->category)
		event->category = name;
}

static int take_event_field(struct reader *reader, const struct sequence *sequence,
	const struct pb_field *field, struct capture_range_event *event)
{
	const char *text = "";
	double whole;
	int result;

	switch (field->tag) {
	case PB_VARINT(EVENT_TYPE):
		event->kind = field->value <= CAPTURE_RANGE_MARK
				      ? (enum capture_range_kind)field->value
				      : 0;
		reader->is_counter = field->value == EVENT_TYPE_COUNTER;
		return 0;
	case PB_FIXED64(EVENT_COUNTER_DOUBLE):
		reader->counter_bits = reader_fixed64(field->bytes);
		return 0;
	case PB_VARINT(EVENT_COUNTER_INT):
		whole = (double)(int64_t)field->value;
		memcpy(&reader->counter_bits, &whole, sizeof(whole));
		return 0;
	case PB_BYTES(EVENT_GPU_CORRELATION):
		reader->submissions = field->bytes;
		return 0;
	case PB_VARINT(EVENT_TRACK):
		event->track = field->value;
		return 0;
	case PB_VARINT(EVENT_NAME_IID):
		event->name = reader_interned_text(reader, &sequence->event_names, field->value);
		return 0;
	case PB_BYTES(EVENT_NAME):
		return reader_text(reader, field->bytes, &event->name);
	case PB_VARINT(EVENT_CATEGORY_IID):
		take_category(event,
			reader_interned_text(reader, &sequence->event_categories, field->value));
		return 0;
	case PB_BYTES(EVENT_CATEGORY):
		result = reader_text(reader, field->bytes, &text);
		take_category(event, text);
		return result;
	case PB_BYTES(EVENT_ANNOTATION):
		return read_annotation(reader, sequence, field->bytes);
	default:
		return 0;
	}
}

static int visit_counter(
	struct reader *reader, const struct capture_range_event *event, const struct track *owner)
{
	struct capture_counter counter = {
		.time_ns = event->time_ns, .pid = owner->pid, .name = event->name};

	if (!*counter.name && owner->name)
		counter.name = intern_get(&reader->strings, owner->name - 1);
	if (!*counter.name)
		return 0;
	memcpy(&counter.value, &reader->counter_bits, sizeof(counter.value));
	return reader_visit(reader, counter, &counter);
}

int reader_track_event(
	struct reader *reader, struct sequence *sequence, uint64_t time_ns, struct pb_bytes message)
{
	struct capture_range_event event = {.time_ns = time_ns,
		.track = sequence->default_track,
		.domain = "",
		.name = "",
		.category = ""};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	struct track owner;
	bool is_work = false;
	int more, result = 0;

	array_clear(&reader->range_fields);
	reader->is_counter = false;
	reader->counter_bits = 0;
	reader->submissions = (struct pb_bytes){0};
	while ((more = pb_next(&cursor, &field)) > 0 && result == 0)
		result = take_event_field(reader, sequence, &field, &event);
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	if ((!event.kind && !reader->is_counter) || !find_owner(reader, event.track, &owner))
		return 0;
	if (reader->is_counter)
		return visit_counter(reader, &event, &owner);
	event.pid = owner.pid;
	event.tid = owner.tid;
	event.fields = reader->range_fields.items;
	event.field_count = (uint32_t)reader->range_fields.count;
	if (!reader->is_ours)
		result = reader_gpu_slice(
			reader, track_title(reader, event.track), &event, &is_work);
	event.lane = !event.tid;
	if (result == 0 && !is_work)
		result = reader_visit(reader, range, &event);
	if (result == 0 && reader->submissions.at && event.kind == CAPTURE_RANGE_BEGIN)
		result = reader_submissions(reader, &event, reader->submissions);
	return result;
}
