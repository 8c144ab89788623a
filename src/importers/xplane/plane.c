/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/xplane/plane.h"

#include <errno.h>
#include <string.h>

static const char *const stat_names[XPLANE_STAT_MAX] = {
	[XPLANE_CORRELATION] = "correlation_id",
	[XPLANE_KERNEL] = "kernel_details",
	[XPLANE_COPY] = "memcpy_details",
	[XPLANE_STEP] = "step_num",
	[XPLANE_PROCESS] = "process_id",
	[XPLANE_DEVICE] = "device_type_string",
	[XPLANE_START] = "profile_start_time",
};

/* ---- values ---- */

static int take_value(struct xplane_value *value, const struct pb_field *field)
{
	value->is_there = true;
	switch (field->tag) {
	case PB_FIXED64(2):
		value->is_double = true;
		memcpy(&value->real, field->bytes.at, sizeof(value->real));
		break;
	case PB_VARINT(3):
	case PB_VARINT(4):
		value->number = (int64_t)field->value;
		break;
	case PB_BYTES(5):
	case PB_BYTES(6):
		value->is_text = true;
		value->text = field->bytes;
		break;
	default:
		value->is_there = false;
	}
	return 0;
}

/* A value that refers to a text, whose table has been read. */
static void take_reference(
	const struct xplane_plane *plane, uint64_t id, struct xplane_value *value)
{
	uint64_t place;

	if (!map_u64_get(&plane->ref_text, id, &place))
		return;
	value->is_there = value->is_text = true;
	value->text = plane->refs.items[place];
}

int xplane_read_stat(const struct xplane_plane *plane, struct pb_bytes message,
	enum xplane_stat *ret_stat, uint64_t *ret_id, struct xplane_value *ret_value)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int r;

	*ret_value = (struct xplane_value){0};
	*ret_id = 0;
	while ((r = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(1))
			*ret_id = field.value;
		else if (field.tag == PB_VARINT(7))
			take_reference(plane, field.value, ret_value);
		else
			take_value(ret_value, &field);
	}
	*ret_stat = XPLANE_STAT_MAX;
	for (unsigned i = 0; i < XPLANE_STAT_MAX; i++) {
		if (plane->ids[i] == *ret_id)
			*ret_stat = i;
	}
	return r;
}

/* ---- tables ---- */

/* An entry of a map: its key, and a message with a name and a name to show. */
struct entry {
	uint64_t id;
	struct pb_bytes name, display_name;
};

static int read_metadata(struct entry *entry, struct pb_bytes message)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int r;

	while ((r = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(1))
			entry->id = field.value;
		else if (field.tag == PB_BYTES(2))
			entry->name = field.bytes;
		else if (field.tag == PB_BYTES(4))
			entry->display_name = field.bytes;
	}
	return r;
}

static int read_entry(struct entry *entry, struct pb_bytes message)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_bytes value = {0};
	struct pb_field field;
	int r;

	*entry = (struct entry){0};
	while ((r = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(1))
			entry->id = field.value;
		else if (field.tag == PB_BYTES(2))
			value = field.bytes;
	}
	return r < 0 ? r : read_metadata(entry, value);
}

static int add_text(struct import_rows *rows, struct pb_bytes text, uint32_t *ret_string)
{
	return import_rows_text(
		rows, text.at ? (const char *)text.at : "", text.length, ret_string);
}

/* Operators of a TPU have their text in HLO for a name, and a short one to show. */
static int add_event(struct xplane_plane *plane, struct import_rows *rows, struct pb_bytes message)
{
	struct entry entry;
	uint32_t name = 0;
	int r = read_entry(&entry, message);

	if (r == 0)
		r = add_text(
			rows, entry.display_name.length ? entry.display_name : entry.name, &name);
	return r < 0 ? r : map_u64_set(&plane->events, entry.id, name);
}

static int add_stat(struct xplane_plane *plane, struct import_rows *rows, struct pb_bytes message)
{
	struct entry entry;
	uint32_t name = 0;
	int r = read_entry(&entry, message);

	if (r == 0)
		r = add_text(rows, entry.name, &name);
	if (r == 0)
		r = map_u64_set(&plane->stats, entry.id, name);
	if (r == 0)
		r = map_u64_set(&plane->ref_text, entry.id, plane->refs.count);
	if (r == 0)
		r = array_append(&plane->refs, entry.name);
	for (unsigned i = 0; r == 0 && i < XPLANE_STAT_MAX; i++) {
		if (strcmp(trace_text(rows->trace, name), stat_names[i]) == 0)
			plane->ids[i] = entry.id;
	}
	return r;
}

static int read_tables(struct xplane_plane *plane, struct import_rows *rows)
{
	struct pb_cursor cursor = pb_cursor(plane->message);
	struct pb_field field;
	int r;

	while ((r = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(1))
			plane->id = (int64_t)field.value;
		else if (field.tag == PB_BYTES(2))
			r = add_text(rows, field.bytes, &plane->name);
		else if (field.tag == PB_BYTES(4))
			r = add_event(plane, rows, field.bytes);
		else if (field.tag == PB_BYTES(5))
			r = add_stat(plane, rows, field.bytes);
		if (r < 0)
			break;
	}
	return r;
}

static int read_values(struct xplane_plane *plane)
{
	struct pb_cursor cursor = pb_cursor(plane->message);
	struct pb_field field;
	int r;

	while ((r = pb_next(&cursor, &field)) > 0) {
		struct xplane_value value;
		enum xplane_stat stat;
		uint64_t id;

		if (field.tag != PB_BYTES(6))
			continue;
		r = xplane_read_stat(plane, field.bytes, &stat, &id, &value);
		if (r < 0)
			break;
		if (stat < XPLANE_STAT_MAX)
			plane->values[stat] = value;
	}
	return r;
}

int xplane_plane_init(struct xplane_plane *plane, struct import_rows *rows, struct pb_bytes message)
{
	int r;

	*plane = (struct xplane_plane){.message = message};
	for (unsigned i = 0; i < XPLANE_STAT_MAX; i++)
		plane->ids[i] = UINT64_MAX;
	r = read_tables(plane, rows);
	return r < 0 ? r : read_values(plane);
}

void xplane_plane_done(struct xplane_plane *plane)
{
	map_u64_done(&plane->events);
	map_u64_done(&plane->stats);
	map_u64_done(&plane->ref_text);
	array_done(&plane->refs);
}
