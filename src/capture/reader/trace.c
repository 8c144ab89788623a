/* SPDX-License-Identifier: Apache-2.0 */
/* Reading imported traces: their tracks, and rows in slices, moments and stages. */
#include <errno.h>
#include <string.h>

#include "capture/fields.h"
#include "capture/reader/state.h"
#include "capture/row_state.h"

#define NO_NUMBER INT64_MIN
/* What a layout costs in memory. */
#define LAYOUT_BYTES 64

static int64_t signed_value(const struct pb_field *field)
{
	return (int64_t)unzigzag(field->value);
}

/* ---- the trace ---- */

static int take_trace_text(
	struct reader *reader, const struct pb_field *field, struct capture_trace *trace)
{
	switch (field->tag) {
	case PB_BYTES(TRACE_PATH):
		return reader_text(reader, field->bytes, &trace->path);
	case PB_BYTES(TRACE_BACKEND):
		return reader_text(reader, field->bytes, &trace->backend);
	case PB_BYTES(TRACE_HEADER):
		return reader_text(reader, field->bytes, &trace->header);
	default:
		return 0;
	}
}

static void take_trace_number(
	struct reader *reader, const struct pb_field *field, struct capture_trace *trace)
{
	switch (field->tag) {
	case PB_VARINT(TRACE_ORIGIN):
		trace->origin_ns = field->value;
		break;
	case PB_VARINT(TRACE_BASE):
		trace->base_ns = field->value;
		break;
	case PB_VARINT(TRACE_RANK):
		trace->rank = (uint32_t)field->value;
		break;
	case PB_VARINT(TRACE_WORLD_SIZE):
		trace->world_size = (uint32_t)field->value;
		break;
	case PB_VARINT(TRACE_HAS_FRACTIONS):
		trace->has_fractions = field->value;
		break;
	case PB_VARINT(TRACE_ARGUMENTS_KEPT):
		trace->arguments_kept = field->value;
		break;
	case PB_VARINT(TRACE_SKIPPED_EVENTS):
		trace->damage.skipped_events = field->value;
		break;
	case PB_VARINT(TRACE_SKIPPED_BYTES):
		trace->damage.skipped_bytes = field->value;
		break;
	case PB_VARINT(TRACE_MENDED_EVENTS):
		trace->damage.mended_events = field->value;
		break;
	case PB_VARINT(TRACE_TRUNCATED):
		trace->damage.truncated = field->value;
		break;
	case PB_VARINT(TRACE_REPAIRED_TIMES):
		trace->damage.repaired_times = field->value;
		break;
	case PB_VARINT(TRACE_UNENDED_EVENTS):
		trace->damage.unended_events = field->value;
		break;
	case PB_VARINT(TRACE_ROWS):
		trace->row_count = reader->trace_rows = field->value;
		break;
	case PB_VARINT(TRACE_EVENT_ID_BASE):
		reader->event_id_base = field->value;
		break;
	case PB_VARINT(TRACE_UNCORRELATED_BASE):
		reader->uncorrelated_base = field->value;
		break;
	}
}

static int read_category(struct reader *reader, struct pb_bytes message)
{
	struct capture_trace_category category = {.name = ""};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_VARINT(TRACE_CATEGORY_KIND))
			category.kind = (uint32_t)field.value;
		else if (field.tag == PB_BYTES(TRACE_CATEGORY_NAME))
			result = reader_text(reader, field.bytes, &category.name);
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	return array_append(&reader->categories, category);
}

int reader_trace(struct reader *reader, struct pb_bytes message)
{
	struct capture_trace trace = {.path = "", .backend = "", .header = "", .rank = UINT32_MAX};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	reader->event_id_base = reader->uncorrelated_base = reader->trace_rows = 0;
	array_clear(&reader->categories);
	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		take_trace_number(reader, &field, &trace);
		result = field.tag == PB_BYTES(TRACE_CATEGORIES)
				 ? read_category(reader, field.bytes)
				 : take_trace_text(reader, &field, &trace);
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	trace.categories = reader->categories.items;
	trace.category_count = reader->categories.count;
	return reader_visit(reader, trace, &trace);
}

static int take_track_text(
	struct reader *reader, const struct pb_field *field, struct capture_trace_track *track)
{
	switch (field->tag) {
	case PB_BYTES(TRACE_TRACK_PID_TEXT):
		return reader_text(reader, field->bytes, &track->pid_text);
	case PB_BYTES(TRACE_TRACK_TID_TEXT):
		return reader_text(reader, field->bytes, &track->tid_text);
	case PB_BYTES(TRACE_TRACK_PROCESS_NAME):
		return reader_text(reader, field->bytes, &track->process_name);
	case PB_BYTES(TRACE_TRACK_THREAD_NAME):
		return reader_text(reader, field->bytes, &track->thread_name);
	case PB_BYTES(TRACE_TRACK_PROCESS_LABELS):
		return reader_text(reader, field->bytes, &track->process_labels);
	default:
		return 0;
	}
}

static void take_track_number(const struct pb_field *field, struct capture_trace_track *track)
{
	switch (field->tag) {
	case PB_VARINT(TRACE_TRACK_NUMBER):
		track->number = (uint32_t)field->value;
		break;
	case PB_VARINT(TRACE_TRACK_PID):
		track->pid = signed_value(field);
		break;
	case PB_VARINT(TRACE_TRACK_TID):
		track->tid = signed_value(field);
		break;
	case PB_VARINT(TRACE_TRACK_PROCESS_SORT):
		track->process_sort = signed_value(field);
		break;
	case PB_VARINT(TRACE_TRACK_THREAD_SORT):
		track->thread_sort = signed_value(field);
		break;
	case PB_VARINT(TRACE_TRACK_OWNER_TID):
		track->owner_tid = signed_value(field);
		break;
	case PB_VARINT(TRACE_TRACK_IS_DEVICE):
		track->is_device = field->value;
		break;
	}
}

int reader_trace_track(struct reader *reader, struct pb_bytes message)
{
	struct capture_trace_track track = {
		.pid = NO_NUMBER,
		.tid = NO_NUMBER,
		.pid_text = "",
		.tid_text = "",
		.process_name = "",
		.thread_name = "",
		.process_labels = "",
		.process_sort = NO_NUMBER,
		.thread_sort = NO_NUMBER,
	};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		take_track_number(&field, &track);
		result = take_track_text(reader, &field, &track);
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	return reader_visit(reader, trace_track, &track);
}

/* ---- rows ---- */

/* Rows of this sequence are a trace's, from now on: of which track their lane tells. */
int reader_begin_rows(struct reader *reader, struct sequence *sequence)
{
	uint64_t index;
	int result = 0;

	sequence->trace_track = 0;
	if (map_u64_get(&reader->track_index, sequence->default_track, &index))
		sequence->trace_track = reader->tracks.items[index].trace_track;
	if (!sequence->trace_track || sequence->rows)
		return 0;
	result = reader_retain(reader, sizeof(*sequence->rows));
	if (result < 0)
		return result;
	sequence->rows = calloc(1, sizeof(*sequence->rows));
	return sequence->rows ? reader_string(reader, (struct pb_bytes){0}, &reader->empty_string)
			      : -ENOMEM;
}

/* The string of an iid, "" of iid 0. False, and the packet counts as skipped, when it is missing.
 */
static bool find_string(
	struct reader *reader, const struct iid_table *table, uint64_t iid, uint64_t *ret_string)
{
	uint32_t id = iid ? iid_table_get(table, iid) : reader->empty_string + 1;

	if (!id)
		reader->lacks_state = true;
	else
		*ret_string = id - 1;
	return id != 0;
}

/* The fields that a row has by its layout, from those that were written and the row before. */
static void take_values(
	struct reader *reader, struct sequence *sequence, uint64_t given, const uint64_t *values)
{
	struct row_state *state = sequence->rows;
	struct capture_trace_row *row = &reader->row;
	uint64_t left = row->layout & ROW_VALUES;

	for (; left; left &= left - 1) {
		unsigned field = (unsigned)__builtin_ctzll(left);
		bool is_given = given & ROW_BIT(field);
		uint64_t step = is_given ? unzigzag(values[field]) : 0;
		uint64_t *previous = &state->previous[field];

		switch (row_coding(field)) {
		case ROW_CODING_TEXT:
			/* One more, so that 0 is none. */
			if (is_given && find_string(reader, &sequence->annotation_texts,
						values[field], previous))
				++*previous;
			row->values[field] = *previous ? *previous - 1 : reader->empty_string;
			continue;
		case ROW_CODING_NEXT:
			step = is_given ? step : 1;
			break;
		case ROW_CODING_STRIDE:
			state->stride = step = is_given ? step : state->stride;
			break;
		case ROW_CODING_SAME:
			break;
		}
		row->values[field] = *previous += step;
	}
}

static int read_fields(
	struct reader *reader, struct sequence *sequence, struct pb_bytes message, uint64_t key)
{
	struct pb_cursor cursor = pb_cursor(message);
	uint64_t given = 0, change = 0, layout = 0, values[ROW_FIELD_MAX], category;
	struct row_state *state = sequence->rows;
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0) {
		uint32_t number = field.tag >> 3;

		if ((field.tag & 7) != PB_WIRE_VARINT || number > ROW_CATEGORY)
			continue;
		if (number == ROW_LAYOUT) {
			change = field.value;
		} else if (number == ROW_CATEGORY) {
			if (find_string(
				    reader, &sequence->annotation_texts, field.value, &category))
				state->category = (uint32_t)category + 1;
		} else {
			given |= ROW_BIT(number);
			values[number] = field.value;
		}
	}
	if (more < 0)
		return more;
	map_u64_get(&state->layouts, key, &layout);
	if (change) {
		layout ^= change;
		result = reader_retain(reader, LAYOUT_BYTES);
		if (result == 0)
			result = map_u64_set(&state->layouts, key, layout);
	}
	reader->row.layout = layout;
	take_values(reader, sequence, given, values);
	return result;
}

/* On which track, and which of its lanes. */
static void take_lane(struct reader *reader, const struct sequence *sequence, uint64_t uuid)
{
	uint64_t index;

	reader->row.track = sequence->trace_track - 1;
	reader->row.lane = 0;
	if (!uuid || !map_u64_get(&reader->track_index, uuid, &index))
		return;
	if (reader->tracks.items[index].trace_track)
		reader->row.track = reader->tracks.items[index].trace_track - 1;
	reader->row.lane = uuid;
}

int reader_trace_slice(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message, struct pb_bytes fields)
{
	struct capture_trace_row *row = &reader->row;
	struct pb_cursor cursor = pb_cursor(message);
	uint64_t uuid = 0, name_iid = 0, category_iid = 0, kind = 0, name, category;
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0) {
		switch (field.tag) {
		case PB_VARINT(EVENT_TYPE):
			kind = field.value;
			break;
		case PB_VARINT(EVENT_TRACK):
			uuid = field.value;
			break;
		case PB_VARINT(EVENT_NAME_IID):
			name_iid = field.value;
			break;
		case PB_VARINT(EVENT_CATEGORY_IID):
			category_iid = field.value;
			break;
		case PB_BYTES(EVENT_SONDE_ROW): /* of older captures */
			fields = field.bytes;
			break;
		}
	}
	if (more < 0 || kind < CAPTURE_ROW_BEGIN || kind > CAPTURE_ROW_MOMENT)
		return more;
	row->kind = (enum capture_row_kind)kind;
	row->time_ns = time_ns;
	row->strings = &reader->strings;
	take_lane(reader, sequence, uuid);
	if (kind == CAPTURE_ROW_END)
		return reader_visit(reader, trace_row, row);
	result = read_fields(reader, sequence, fields, category_iid);
	if (result < 0)
		return result;
	if (!find_string(reader, &sequence->event_names, name_iid, &name) ||
		!find_string(reader, &sequence->event_categories, category_iid, &category))
		name = category = reader->empty_string;
	row->name = (uint32_t)name;
	row->category = (uint32_t)category;
	return reader_visit(reader, trace_row, row);
}

/* Stages of captures before ids were unique have no id when they have no correlation. */
static bool is_correlated(const struct reader *reader, uint64_t event_id)
{
	return event_id && (!reader->uncorrelated_base ||
				   event_id - reader->uncorrelated_base >= reader->trace_rows);
}

/* What the stage itself tells of the row. */
static void take_stage(struct reader *reader, const struct capture_device_work *work)
{
	struct capture_trace_row *row = &reader->row;

	row->duration_ns = work->end_ns - work->start_ns;
	if (is_correlated(reader, work->correlation)) {
		row->layout |= ROW_BIT(ROW_CORRELATION);
		row->values[ROW_CORRELATION] = work->correlation - reader->event_id_base;
	}
	for (unsigned i = 0; i < 3; i++) {
		row->values[ROW_GRID + i] = work->global_size[i];
		row->values[ROW_BLOCK + i] = work->local_size[i];
		if (work->global_size[i])
			row->layout |= ROW_BIT(ROW_GRID + i);
		if (work->local_size[i])
			row->layout |= ROW_BIT(ROW_BLOCK + i);
	}
}

int reader_trace_stage(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes stage, struct pb_bytes message)
{
	struct capture_device_work work = {.start_ns = time_ns, .end_ns = time_ns};
	struct capture_trace_row *row = &reader->row;
	uint64_t name_iid = 0, name;
	int result = reader_stage(stage, &work, &name_iid);

	if (result == 0)
		result = read_fields(reader, sequence, message, ROW_STAGES);
	if (result < 0)
		return result;
	if (!find_string(reader, &sequence->specifications, name_iid, &name))
		name = reader->empty_string;
	row->kind = CAPTURE_ROW_STAGE;
	row->time_ns = time_ns;
	row->strings = &reader->strings;
	row->name = (uint32_t)name;
	row->category =
		sequence->rows->category ? sequence->rows->category - 1 : reader->empty_string;
	take_lane(reader, sequence, 0);
	take_stage(reader, &work);
	return reader_visit(reader, trace_row, row);
}

/* ---- what is of no track ---- */

int reader_trace_flow(struct reader *reader, struct pb_bytes message)
{
	struct capture_trace_flow flow = {.category = ""};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_VARINT(TRACE_FLOW_TIME))
			flow.time_ns = field.value;
		else if (field.tag == PB_VARINT(TRACE_FLOW_ID))
			flow.id = field.value;
		else if (field.tag == PB_VARINT(TRACE_FLOW_TRACK))
			flow.track = (uint32_t)field.value;
		else if (field.tag == PB_VARINT(TRACE_FLOW_IS_END))
			flow.is_end = field.value;
		else if (field.tag == PB_BYTES(TRACE_FLOW_CATEGORY))
			result = reader_text(reader, field.bytes, &flow.category);
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	return reader_visit(reader, trace_flow, &flow);
}

int reader_trace_counter(struct reader *reader, struct pb_bytes message)
{
	struct capture_trace_counter counter = {.name = "", .series = ""};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	uint64_t bits = 0;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_VARINT(TRACE_COUNTER_TIME))
			counter.time_ns = field.value;
		else if (field.tag == PB_VARINT(TRACE_COUNTER_TRACK))
			counter.track = (uint32_t)field.value;
		else if (field.tag == PB_VARINT(TRACE_COUNTER_DEVICE))
			counter.device = (uint32_t)field.value;
		else if (field.tag == PB_BYTES(TRACE_COUNTER_NAME))
			result = reader_text(reader, field.bytes, &counter.name);
		else if (field.tag == PB_BYTES(TRACE_COUNTER_SERIES))
			result = reader_text(reader, field.bytes, &counter.series);
		else if (field.tag == PB_FIXED64(TRACE_COUNTER_VALUE))
			bits = reader_fixed64(field.bytes);
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	memcpy(&counter.value, &bits, sizeof(bits));
	return reader_visit(reader, trace_counter, &counter);
}

int reader_trace_group(struct reader *reader, struct pb_bytes message)
{
	struct capture_trace_group group = {
		.name = "", .description = "", .backend = "", .ranks = "", .size = NO_NUMBER};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_VARINT(TRACE_GROUP_SIZE))
			group.size = signed_value(&field);
		else if (field.tag == PB_BYTES(TRACE_GROUP_NAME))
			result = reader_text(reader, field.bytes, &group.name);
		else if (field.tag == PB_BYTES(TRACE_GROUP_DESCRIPTION))
			result = reader_text(reader, field.bytes, &group.description);
		else if (field.tag == PB_BYTES(TRACE_GROUP_BACKEND))
			result = reader_text(reader, field.bytes, &group.backend);
		else if (field.tag == PB_BYTES(TRACE_GROUP_RANKS))
			result = reader_text(reader, field.bytes, &group.ranks);
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	return reader_visit(reader, trace_group, &group);
}
