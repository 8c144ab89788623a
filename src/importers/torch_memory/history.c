/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a device in a snapshot of PyTorch's memory, as rows. */
#include <stdio.h>
#include <string.h>

#include "importers/torch_memory/torch_memory.h"

enum action {
	ACTION_OTHER, /* requests to release, which only complete later; the snapshot itself */
	ACTION_ALLOC,
	ACTION_FREE,
	ACTION_RESERVE, /* a segment, or a part of one that can grow */
	ACTION_RETURN,
	ACTION_OOM,
};

struct history {
	struct snapshot *snapshot;
	struct snapshot_device *device;
	struct value entries;
	struct map_u64 live;         /* address → bytes, of what is allocated in it */
	int64_t allocated, reserved; /* bytes by now */
	int64_t begin_us;            /* of all devices: times count from here */
	int64_t begin_ns;            /* of this one */
	uint32_t track, name;
};

static enum action action_of(const struct value *action)
{
	static const struct {
		const char *name;
		enum action action;
	} actions[] = {
		{"alloc", ACTION_ALLOC},
		{"free_completed", ACTION_FREE},
		{"segment_alloc", ACTION_RESERVE},
		{"segment_map", ACTION_RESERVE},
		{"segment_free", ACTION_RETURN},
		{"segment_unmap", ACTION_RETURN},
		{"oom", ACTION_OOM},
	};

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (value_is(action, actions[i].name))
			return actions[i].action;
	}
	return ACTION_OTHER;
}

struct entry {
	enum action action;
	uint64_t address;
	int64_t bytes, time_ns;
	struct value frames;
};

/* Before PyTorch 2.1 entries have no time: they keep their order. */
static struct entry read_entry(const struct history *history, size_t i)
{
	const struct value_document *document = &history->snapshot->document;
	const struct value item = value_item(document, &history->entries, i);
	const struct value action = value_member(document, &item, "action");
	const struct value address = value_member(document, &item, "addr");
	const struct value bytes = value_member(document, &item, "size");
	const struct value time_us = value_member(document, &item, "time_us");
	struct entry entry = {
		.action = action_of(&action),
		.address = (uint64_t)value_number(&address, 0),
		.bytes = value_number(&bytes, 0),
		.frames = value_member(document, &item, "frames"),
		.time_ns = (int64_t)i,
	};

	if (time_us.type == VALUE_NUMBER)
		entry.time_ns = (int64_t)(((uint64_t)time_us.number - (uint64_t)history->begin_us) *
					  NS_PER_US);
	if (entry.bytes < 0 || entry.bytes > SNAPSHOT_MOST_BYTES)
		entry.action = ACTION_OTHER;
	return entry;
}

/* ---- rows ---- */

static int add_row(
	struct history *history, int64_t time_ns, int64_t bytes, uint64_t address, uint32_t others)
{
	struct import_rows *rows = &history->snapshot->rows;
	struct trace_event event = import_rows_event(rows, TRACE_CPU_INSTANT);
	struct trace_memory memory = trace_no_memory;

	history->allocated += bytes;
	event.start_ns = time_ns;
	event.name = history->name;
	event.track = history->track;
	memory.address = address;
	memory.bytes = bytes;
	memory.total_allocated = history->allocated;
	memory.total_reserved = history->reserved;
	memory.device_type = TRACE_DEVICE_CUDA;
	memory.device_id = history->device->number;
	memory.others = others;
	return import_rows_add_memory(rows, &event, &memory);
}

static int add_failure(struct history *history, const struct entry *entry)
{
	struct import_rows *rows = &history->snapshot->rows;
	struct trace_event event = import_rows_event(rows, TRACE_USER_ANNOTATION);
	char name[96];
	int r;

	snprintf(name, sizeof(name), "out of memory: %lld bytes were asked for",
		(long long)entry->bytes);
	event.start_ns = entry->time_ns;
	event.track = history->track;
	r = import_rows_text(rows, name, strlen(name), &event.name);
	return r < 0 ? r : import_rows_add(rows, &event);
}

static int add_entry(struct history *history, const struct entry *entry)
{
	uint64_t bytes;
	uint32_t others;
	int r;

	switch (entry->action) {
	case ACTION_ALLOC:
		r = snapshot_stack(history->snapshot, &entry->frames, &others);
		return r < 0 ? r
			     : add_row(history, entry->time_ns, entry->bytes, entry->address,
				       others);
	case ACTION_FREE:
		bytes = (uint64_t)entry->bytes;
		map_u64_get(&history->live, entry->address, &bytes);
		return add_row(history, entry->time_ns, -(int64_t)bytes, entry->address, 0);
	case ACTION_RESERVE:
		history->reserved += entry->bytes;
		return 0;
	case ACTION_RETURN:
		history->reserved -= entry->bytes;
		return 0;
	case ACTION_OOM:
		return add_failure(history, entry);
	default:
		return 0;
	}
}

/* ---- what was there before ---- */

/* Released without having been allocated in the history: it was there before. */
static int add_released_before(struct history *history, size_t count)
{
	uint64_t bytes;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct entry entry = read_entry(history, i);

		if (entry.action == ACTION_ALLOC)
			r = map_u64_set(&history->live, entry.address, (uint64_t)entry.bytes);
		else if (entry.action == ACTION_FREE &&
			 !map_u64_get(&history->live, entry.address, &bytes))
			r = add_row(history, history->begin_ns, entry.bytes, entry.address, 0);
		else if (entry.action == ACTION_FREE)
			map_u64_remove(&history->live, entry.address);
	}
	return r;
}

/* In use at the end, and not allocated in the history. */
static int add_kept_before(struct history *history)
{
	int r = 0;

	array_foreach (&history->device->blocks, block) {
		if (r == 0 && !map_u64_get(&history->live, block->address, NULL))
			r = add_row(history, history->begin_ns, block->bytes, block->address,
				block->others);
	}
	return r;
}

/* What is reserved at the end is known, and so what was at the begin. */
static void find_begin(struct history *history, size_t count)
{
	history->reserved = history->device->pool.reserved_bytes;
	for (size_t i = 0; i < count; i++) {
		const struct entry entry = read_entry(history, i);

		if (i == 0)
			history->begin_ns = entry.time_ns;
		if (entry.action == ACTION_RESERVE)
			history->reserved -= entry.bytes;
		else if (entry.action == ACTION_RETURN)
			history->reserved += entry.bytes;
	}
	history->reserved = MAX(history->reserved, (int64_t)0);
}

static int read_entries(struct history *history)
{
	size_t count = value_count(&history->snapshot->document, &history->entries);
	int r;

	count = MIN(count, history->snapshot->visits);
	history->snapshot->visits -= count;
	find_begin(history, count);
	r = add_released_before(history, count);
	if (r == 0)
		r = add_kept_before(history);
	map_u64_clear(&history->live);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct entry entry = read_entry(history, i);

		r = add_entry(history, &entry);
		if (r == 0 && entry.action == ACTION_ALLOC)
			r = map_u64_set(&history->live, entry.address, (uint64_t)entry.bytes);
	}
	return r;
}

/* ---- all devices ---- */

static int find_track(struct history *history)
{
	struct import_rows *rows = &history->snapshot->rows;
	struct trace_track track = import_rows_thread(TRACE_NO_NUMBER, history->device->number);
	char name[48];
	int r;

	snprintf(name, sizeof(name), "memory of GPU %lld", (long long)history->device->number);
	track.owner_tid = TRACE_OF_PROCESS;
	r = import_rows_text(rows, "allocator", strlen("allocator"), &track.pid_text);
	track.process_name = track.pid_text;
	if (r == 0)
		r = import_rows_text(rows, name, strlen(name), &track.thread_name);
	if (r == 0)
		r = import_rows_text(rows, "[memory]", strlen("[memory]"), &history->name);
	return r < 0 ? r : import_rows_track(rows, &track, 0, &history->track);
}

/* The first time of any device, since 1970. */
static int64_t first_time(const struct value_document *document, const struct value *devices)
{
	int64_t first_us = INT64_MAX;

	for (size_t i = 0; i < value_count(document, devices); i++) {
		const struct value entries = value_item(document, devices, i);
		struct value time_us;

		if (!value_count(document, &entries))
			continue;
		time_us = value_item(document, &entries, 0);
		time_us = value_member(document, &time_us, "time_us");
		first_us = MIN(first_us, value_number(&time_us, INT64_MAX));
	}
	return first_us == INT64_MAX ? 0 : first_us;
}

int snapshot_read_history(struct snapshot *snapshot)
{
	const struct value_document *document = &snapshot->document;
	const struct value devices = value_member(document, &document->root, "device_traces");
	size_t count = MIN(value_count(document, &devices), (size_t)1024);
	int64_t begin_us = first_time(document, &devices);
	struct snapshot_device *device;
	int r = 0;

	if (begin_us > 0)
		snapshot->rows.trace->base_ns = (uint64_t)begin_us * NS_PER_US;
	if (count)
		r = snapshot_find_device(snapshot, (int64_t)count - 1, &device);
	for (size_t i = 0; r == 0 && i < snapshot->devices.count; i++) {
		struct history history = {
			.snapshot = snapshot,
			.device = &snapshot->devices.items[i],
			.begin_us = begin_us,
		};

		if (i < count)
			history.entries = value_item(document, &devices, i);
		r = find_track(&history);
		if (r == 0)
			r = read_entries(&history);
		map_u64_done(&history.live);
	}
	return r;
}
