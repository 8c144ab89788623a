/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of XLA as protobuf (XSpace of xplane.proto), which JAX and TensorFlow write beside their
 * Chrome JSON: planes of devices and of the host, with a line for each stream and thread. Names
 * say which rows are work: xla_names.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "importers/importers.h"
#include "importers/xla_names.h"
#include "importers/xplane/plane.h"

/* Times since 1970 in ns are beyond it, those since the start of a profile are not. */
#define LEAST_EPOCH_NS ((int64_t)1000000000000000)

struct space {
	struct import_rows rows;
	struct strbuf bytes;
	int64_t base_ns; /* of all lines: taken off */
	uint64_t sums;   /* events that say how often something was, and not when */
};

struct line {
	const struct xplane_plane *plane;
	struct pb_bytes message;
	int64_t id, start_ns;
	uint32_t name, track;
	struct xla_track of;
};

struct event {
	uint64_t metadata;
	int64_t offset_ps, duration_ps;
	bool is_sum;
	struct xplane_value values[XPLANE_STAT_MAX];
};

/* ---- details ---- */

/* The digits behind "name:" in "… name:12 …", of which there may be some, with commas between. */
static unsigned read_numbers(
	struct pb_bytes text, const char *name, uint64_t *ret_numbers, unsigned most)
{
	const char *end = (const char *)text.at + text.length;
	const char *at = text.length ? memmem(text.at, text.length, name, strlen(name)) : NULL;
	unsigned count = 0;

	if (!at)
		return 0;
	at += strlen(name);
	while (count < most && at < end && *at >= '0' && *at <= '9') {
		uint64_t number = 0;

		for (; at < end && *at >= '0' && *at <= '9'; at++)
			number = number * 10 + (uint64_t)(*at - '0');
		ret_numbers[count++] = number;
		at += at < end && *at == ',';
	}
	return count;
}

static void read_kernel(struct pb_bytes text, struct trace_work *work)
{
	uint64_t numbers[3] = {0}, fixed = 0, dynamic = 0;

	if (read_numbers(text, "regs:", numbers, 1))
		work->registers = (uint32_t)numbers[0];
	read_numbers(text, "static_shared:", &fixed, 1);
	read_numbers(text, "dynamic_shared:", &dynamic, 1);
	work->shared_bytes = (uint32_t)(fixed + dynamic);
	if (read_numbers(text, "grid:", numbers, 3) == 3) {
		for (int i = 0; i < 3; i++)
			work->grid[i] = (uint32_t)numbers[i];
	}
	if (read_numbers(text, "block:", numbers, 3) == 3) {
		for (int i = 0; i < 3; i++)
			work->block[i] = (uint32_t)numbers[i];
	}
}

static void add_value(struct strbuf *out, const struct xplane_value *value)
{
	if (value->is_double) {
		strbuf_addf(out, "%.17g", value->real);
	} else if (value->is_text) {
		strbuf_add_char(out, '"');
		json_escape(out, (const char *)value->text.at, value->text.length);
		strbuf_add_char(out, '"');
	} else {
		strbuf_addf(out, "%lld", (long long)value->number);
	}
}

/* All statistics of an event as members of an object: what the Chrome JSON has of them, too. */
static int read_arguments(struct space *space, const struct xplane_plane *plane,
	struct pb_bytes message, uint32_t *ret_string)
{
	struct pb_cursor cursor = pb_cursor(message);
	_cleanup_strbuf_ struct strbuf out = {0};
	struct pb_field field;

	while (pb_next(&cursor, &field) > 0) {
		struct xplane_value value;
		enum xplane_stat stat;
		uint64_t id, name;

		if (field.tag != PB_BYTES(4) ||
			xplane_read_stat(plane, field.bytes, &stat, &id, &value) < 0 ||
			!value.is_there || !map_u64_get(&plane->stats, id, &name))
			continue;
		strbuf_add(&out, out.length ? ",\"" : "\"");
		json_escape(&out, trace_text(space->rows.trace, (uint32_t)name),
			strlen(trace_text(space->rows.trace, (uint32_t)name)));
		strbuf_add(&out, "\":");
		add_value(&out, &value);
	}
	if (!out.length)
		return 0;
	return strbuf_status(&out) < 0
		       ? -ENOMEM
		       : import_rows_text(&space->rows, out.data, out.length, ret_string);
}

/* ---- events ---- */

static int read_event(struct event *event, const struct line *line, struct pb_bytes message)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct xplane_value value;
	enum xplane_stat stat;
	struct pb_field field;
	uint64_t id;
	int r;

	*event = (struct event){0};
	while ((r = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(1))
			event->metadata = field.value;
		else if (field.tag == PB_VARINT(2))
			event->offset_ps = (int64_t)field.value;
		else if (field.tag == PB_VARINT(3))
			event->duration_ps = (int64_t)field.value;
		else if (field.tag == PB_VARINT(5))
			event->is_sum = true;
		if (field.tag != PB_BYTES(4))
			continue;
		r = xplane_read_stat(line->plane, field.bytes, &stat, &id, &value);
		if (r < 0)
			break;
		if (stat < XPLANE_STAT_MAX)
			event->values[stat] = value;
	}
	return r;
}

static int add_work(struct space *space, const struct line *line, const struct event *event,
	struct trace_event *row, uint32_t others)
{
	const char *name = trace_text(space->rows.trace, row->name);
	enum trace_category category =
		line->of.kind == XLA_STREAM ? xla_work_category(name) : TRACE_GPU_ANNOTATION;
	struct trace_work work = trace_no_work;

	row->category = (uint8_t)category;
	row->category_name = space->rows.categories[category];
	work.device = line->of.device;
	work.stream = line->of.stream;
	work.others = others;
	if (event->values[XPLANE_KERNEL].is_text)
		read_kernel(event->values[XPLANE_KERNEL].text, &work);
	if (event->values[XPLANE_COPY].is_text)
		read_numbers(event->values[XPLANE_COPY].text, "size:", &work.bytes, 1);
	return import_rows_add_work(&space->rows, row, &work);
}

/* A StepTraceAnnotation has the number of its step beside its name, as steps of sonde have. */
static int add_step(struct space *space, struct trace_event *row, int64_t number)
{
	_cleanup_strbuf_ struct strbuf argument = {0};
	const char *name = trace_text(space->rows.trace, row->name);
	struct trace_op op = trace_no_op;
	char text[48];
	int r;

	strbuf_add(&argument, "\"name\":\"");
	json_escape(&argument, name, strlen(name));
	strbuf_add_char(&argument, '"');
	r = strbuf_status(&argument);
	if (r == 0)
		r = import_rows_text(&space->rows, argument.data, argument.length, &op.others);
	snprintf(text, sizeof(text), "ProfilerStep#%lld", (long long)number);
	if (r == 0)
		r = import_rows_text(&space->rows, text, strlen(text), &row->name);
	row->category = TRACE_USER_ANNOTATION;
	row->category_name = space->rows.categories[TRACE_USER_ANNOTATION];
	return r < 0 ? r : import_rows_add_op(&space->rows, row, &op);
}

static int add_host(
	struct space *space, const struct event *event, struct trace_event *row, uint32_t others)
{
	const struct xplane_value *step = &event->values[XPLANE_STEP];
	struct trace_op op = trace_no_op;
	enum trace_category category;

	if (step->is_there && !step->is_text && step->number >= 0)
		return add_step(space, row, step->number);
	category = xla_host_category(trace_text(space->rows.trace, row->name), row->correlation);
	row->category = (uint8_t)category;
	row->category_name = category == TRACE_OTHER ? 0 : space->rows.categories[category];
	op.others = others;
	return others ? import_rows_add_op(&space->rows, row, &op)
		      : import_rows_add(&space->rows, row);
}

static int add_event(struct space *space, const struct line *line, struct pb_bytes message)
{
	struct trace_event row = import_rows_event(&space->rows, TRACE_OTHER);
	uint64_t name = 0;
	uint32_t others = 0;
	struct event event;
	int64_t end_ps;
	int r = read_event(&event, line, message);

	if (r < 0)
		return r;
	if (event.is_sum) {
		space->sums++;
		return 0;
	}
	map_u64_get(&line->plane->events, event.metadata, &name);
	row.name = (uint32_t)name;
	row.track = line->track;
	if (event.values[XPLANE_CORRELATION].is_there && !event.values[XPLANE_CORRELATION].is_text)
		row.correlation = (uint64_t)event.values[XPLANE_CORRELATION].number;
	if (__builtin_add_overflow(event.offset_ps, event.duration_ps, &end_ps))
		end_ps = event.offset_ps;
	/* Both ends are rounded down, so that what lies in another row still does. */
	row.start_ns = (int64_t)((uint64_t)line->start_ns + (uint64_t)(event.offset_ps / 1000));
	row.duration_ns = end_ps / 1000 - event.offset_ps / 1000;
	if (space->rows.trace->arguments_kept)
		r = read_arguments(space, line->plane, message, &others);
	if (r < 0)
		return r;
	return line->of.kind == XLA_NOT ? add_host(space, &event, &row, others)
					: add_work(space, line, &event, &row, others);
}

/* ---- lines ---- */

static int read_line(struct space *space, struct line *line)
{
	struct pb_cursor cursor = pb_cursor(line->message);
	struct pb_bytes name = {0}, shown = {0};
	struct pb_field field;
	int r;

	while ((r = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(1))
			line->id = (int64_t)field.value;
		else if (field.tag == PB_BYTES(2))
			name = field.bytes;
		else if (field.tag == PB_VARINT(3))
			line->start_ns = (int64_t)(field.value - (uint64_t)space->base_ns);
		else if (field.tag == PB_BYTES(11))
			shown = field.bytes;
	}
	if (shown.length)
		name = shown;
	return r < 0 ? r
		     : import_rows_text(&space->rows, name.at ? (const char *)name.at : "",
			       name.length, &line->name);
}

static int find_track(struct space *space, struct line *line)
{
	const struct xplane_plane *plane = line->plane;
	const struct xplane_value *process = &plane->values[XPLANE_PROCESS];
	const char *process_name = trace_text(space->rows.trace, plane->name);
	struct trace_track track = import_rows_thread(TRACE_NO_NUMBER, line->id);

	line->of = xla_track_of(process_name, trace_text(space->rows.trace, line->name), line->id);
	track.process_name = plane->name;
	track.thread_name = line->name;
	track.is_device = line->of.kind != XLA_NOT;
	if (track.is_device)
		track.pid = line->of.device;
	else if (process->is_there && !process->is_text && process->number > 0)
		track.pid = process->number;
	else
		track.pid_text = plane->name;
	return import_rows_track(&space->rows, &track, 0, &line->track);
}

static int read_events(struct space *space, const struct line *line)
{
	struct pb_cursor cursor = pb_cursor(line->message);
	struct pb_field field;
	int r;

	while ((r = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_BYTES(4))
			r = add_event(space, line, field.bytes);
		if (r < 0)
			break;
	}
	return r;
}

static int read_lines(struct space *space, const struct xplane_plane *plane)
{
	struct pb_cursor cursor = pb_cursor(plane->message);
	struct pb_field field;
	int r;

	while ((r = pb_next(&cursor, &field)) > 0) {
		struct line line = {.plane = plane, .message = field.bytes};

		if (field.tag != PB_BYTES(3))
			continue;
		r = read_line(space, &line);
		if (r == 0)
			r = find_track(space, &line);
		if (r == 0)
			r = read_events(space, &line);
		if (r < 0)
			break;
	}
	return r;
}

/* ---- planes ---- */

static int read_plane(struct space *space, struct pb_bytes message)
{
	struct xplane_plane plane;
	const struct xplane_value *name;
	struct xla_track device;
	int r = xplane_plane_init(&plane, &space->rows, message);

	name = &plane.values[XPLANE_DEVICE];
	if (r == 0 && name->is_text && name->text.length) {
		device = xla_track_of(trace_text(space->rows.trace, plane.name), "", 0);
		if (device.kind != XLA_NOT)
			r = trace_name_device(space->rows.trace, device.device,
				(const char *)name->text.at, name->text.length);
	}
	if (r == 0)
		r = read_lines(space, &plane);
	xplane_plane_done(&plane);
	return r;
}

/* Calls `take` for each plane. What is damaged ends the reading; what was read before is shown. */
static int each_plane(
	struct space *space, int (*take)(struct space *space, struct pb_bytes message))
{
	struct pb_cursor cursor = pb_cursor(
		(struct pb_bytes){(const uint8_t *)space->bytes.data, space->bytes.length});
	struct pb_field field;
	int r;

	while ((r = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_BYTES(1))
			r = take(space, field.bytes);
		if (r < 0)
			break;
	}
	return r;
}

/* Where lines count from 1970, all are taken to count from the first. */
static int find_base(struct space *space, struct pb_bytes message)
{
	struct pb_cursor plane = pb_cursor(message);
	struct pb_field field, inner;
	int r;

	while ((r = pb_next(&plane, &field)) > 0) {
		struct pb_cursor line = pb_cursor(field.bytes);

		if (field.tag != PB_BYTES(3))
			continue;
		while (pb_next(&line, &inner) > 0 && inner.tag != PB_BYTES(4)) {
			if (inner.tag == PB_VARINT(3) && (int64_t)inner.value >= LEAST_EPOCH_NS)
				space->base_ns = space->base_ns
							 ? MIN(space->base_ns, (int64_t)inner.value)
							 : (int64_t)inner.value;
		}
	}
	return r;
}

static int find_start(struct space *space, struct pb_bytes message)
{
	struct xplane_plane plane;
	const struct xplane_value *start;
	int r = xplane_plane_init(&plane, &space->rows, message);

	start = &plane.values[XPLANE_START];
	if (r == 0 && start->is_there && !start->is_text && start->number > 0)
		space->rows.trace->base_ns = (uint64_t)start->number;
	xplane_plane_done(&plane);
	return r;
}

/* ---- all of it ---- */

static int read_all(struct space *space)
{
	int r = each_plane(space, find_base);

	if ((r == 0 || r == -EBADMSG) && space->base_ns)
		space->rows.trace->base_ns = (uint64_t)space->base_ns;
	else if (r == 0)
		r = each_plane(space, find_start);
	if (r == 0 || r == -EBADMSG)
		r = each_plane(space, read_plane);
	if (r == -EBADMSG) {
		space->rows.trace->damage.truncated = true;
		r = 0;
	}
	if (r == 0 && space->sums)
		r = import_rows_note(&space->rows,
			"left out: %llu events that say how often something was done, and not "
			"when",
			(unsigned long long)space->sums);
	return r;
}

static void space_done(struct space *space)
{
	import_rows_done(&space->rows);
	strbuf_done(&space->bytes);
}

static int xplane_read(struct trace **ret_trace, const char *path,
	const struct trace_read_options *options, struct errmsg *err)
{
	_cleanup_(space_done) struct space space = {0};
	bool truncated;
	int r = import_read_file(path, options, &space.bytes, &truncated, err);

	if (r < 0)
		return r;
	r = import_rows_init(&space.rows, path, options);
	if (r == 0) {
		space.rows.trace->damage.truncated = truncated;
		r = read_all(&space);
	}
	return import_rows_finish(&space.rows, r,
		"there is no line with events in it, which a profile of XLA (XPlane) would have",
		ret_trace, err);
}

/* An XSpace begins with a plane, a plane with its number and name, and names begin so. */
static bool xplane_knows(const char *head, size_t length)
{
	static const char *const beginnings[] = {"/host:", "/device:", "Task Environment"};
	struct pb_cursor cursor = {(const uint8_t *)head, (const uint8_t *)head + length};
	uint64_t tag, size;

	if (pb_read_varint(&cursor, &tag) < 0 || tag != PB_BYTES(1) ||
		pb_read_varint(&cursor, &size) < 0 || pb_read_varint(&cursor, &tag) < 0)
		return false;
	if (tag == PB_VARINT(1) &&
		(pb_read_varint(&cursor, &size) < 0 || pb_read_varint(&cursor, &tag) < 0))
		return false;
	if (tag != PB_BYTES(2) || pb_read_varint(&cursor, &size) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		size_t count = strlen(beginnings[i]);

		if (size >= count && (size_t)(cursor.end - cursor.at) >= count &&
			memcmp(cursor.at, beginnings[i], count) == 0)
			return true;
	}
	return false;
}

static const char *const endings[] = {".xplane.pb", ".xplane.pb.gz", NULL};

const struct importer xplane_importer = {
	.name = "xplane",
	.description = "profiles of JAX and TensorFlow as protobuf (XPlane)",
	.endings = endings,
	.names = endings,
	.knows = xplane_knows,
	.read = xplane_read,
};
