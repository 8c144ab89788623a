/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/split/tables.h"

#include <errno.h>
#include <string.h>

void split_tables_done(struct split_tables *tables)
{
	intern_done(&tables->texts);
	array_done(&tables->mappings);
	array_done(&tables->frames);
	array_done(&tables->callstacks);
	array_done(&tables->callstack_frames);
}

void split_ids_done(struct split_ids *ids)
{
	map_u64_done(&ids->mappings);
	map_u64_done(&ids->frames);
	map_u64_done(&ids->callstacks);
	map_u64_done(&ids->sites);
}

static int keep_bytes(
	struct split_tables *tables, const void *bytes, size_t length, const char **ret_bytes)
{
	uint32_t id;
	int r = intern_add(&tables->texts, bytes, length, &id);

	if (r < 0)
		return r;
	*ret_bytes = intern_get(&tables->texts, id);
	return 0;
}

int split_tables_text(struct split_tables *tables, const char *text, const char **ret_text)
{
	return keep_bytes(tables, text ? text : "", text ? strlen(text) : 0, ret_text);
}

int split_tables_add_mapping(struct split_tables *tables, const struct capture_mapping *mapping)
{
	struct capture_mapping kept = *mapping;
	const char *build_id = "";
	int r = split_tables_text(tables, mapping->path, &kept.path);

	if (mapping->build_id_length)
		if (r == 0)
			r = keep_bytes(
				tables, mapping->build_id, mapping->build_id_length, &build_id);
	kept.build_id = (const uint8_t *)build_id;
	if (r == 0)
		r = array_append(&tables->mappings, kept);
	return r;
}

int split_tables_add_frame(struct split_tables *tables, const struct capture_frame *frame)
{
	struct capture_frame kept = *frame;
	int r = 0;

	if (frame->function)
		r = split_tables_text(tables, frame->function, &kept.function);
	if (frame->source_file)
		if (r == 0)
			r = split_tables_text(tables, frame->source_file, &kept.source_file);
	if (r == 0)
		r = array_append(&tables->frames, kept);
	return r;
}

int split_tables_add_callstack(struct split_tables *tables, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python)
{
	struct split_callstack kept = {
		.first = (uint32_t)tables->callstack_frames.count,
		.count = (uint32_t)count,
		.stop = stop,
		.python = python,
	};
	int r = array_reserve(&tables->callstack_frames, count);

	for (size_t i = 0; r == 0 && i < count; i++)
		r = array_append(&tables->callstack_frames, frames[i]);
	if (r == 0)
		r = array_append(&tables->callstacks, kept);
	return r;
}

static uint64_t split_site(capture_id mapping, uint64_t rel_pc)
{
	return hash_u64(rel_pc ^ hash_u64(mapping));
}

static int split_mapping(const struct split_tables *tables, struct split_ids *ids,
	struct capture_writer *writer, capture_id mapping, capture_id *ret_id)
{
	uint64_t known;
	int r;

	*ret_id = 0;
	if (!mapping)
		return 0;
	if (map_u64_get(&ids->mappings, mapping, &known)) {
		*ret_id = (capture_id)known;
		return 0;
	}
	r = capture_writer_mapping(writer, &tables->mappings.items[mapping - 1], ret_id);
	if (r == 0)
		r = map_u64_set(&ids->mappings, mapping, *ret_id);
	return r;
}

static int split_frame(const struct split_tables *tables, struct split_ids *ids,
	struct capture_writer *writer, capture_id frame, capture_id *ret_id)
{
	struct capture_frame out = tables->frames.items[frame - 1];
	uint64_t known;
	int r;

	if (map_u64_get(&ids->frames, frame, &known)) {
		*ret_id = (capture_id)known;
		return 0;
	}
	r = map_u64_set(&ids->sites, split_site(out.mapping, out.rel_pc), 1);
	if (r == 0)
		r = split_mapping(tables, ids, writer, out.mapping, &out.mapping);
	if (r == 0)
		r = capture_writer_frame(writer, &out, ret_id);
	if (r == 0)
		r = map_u64_set(&ids->frames, frame, *ret_id);
	return r;
}

int split_frames(const struct split_tables *tables, struct split_ids *ids,
	struct capture_writer *writer, const capture_id *frames,
	const struct split_callstack *found, capture_id *ret_id)
{
	ARRAY_OF(capture_id) own = {0};
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < found->count; i++) {
		capture_id frame = 0;

		r = split_frame(tables, ids, writer, frames[i], &frame);
		if (r == 0)
			r = array_append(&own, frame);
	}
	if (r == 0)
		r = capture_writer_callstack(
			writer, own.items, own.count, found->stop, found->python, ret_id);
	array_done(&own);
	return r;
}

int split_callstack(const struct split_tables *tables, struct split_ids *ids,
	struct capture_writer *writer, capture_id callstack, bool is_sampled, capture_id *ret_id)
{
	uint64_t key = (uint64_t)callstack << 1 | is_sampled;
	const struct split_callstack *found;
	uint64_t known;
	int r;

	*ret_id = 0;
	if (!callstack)
		return 0;
	if (map_u64_get(&ids->callstacks, key, &known)) {
		*ret_id = (capture_id)known;
		return 0;
	}
	found = &tables->callstacks.items[callstack - 1];
	r = split_frames(
		tables, ids, writer, tables->callstack_frames.items + found->first, found, ret_id);
	return r < 0 ? r : map_u64_set(&ids->callstacks, key, *ret_id);
}

bool split_has_site(
	const struct split_ids *ids, capture_id mapping, uint64_t rel_pc, capture_id *ret_mapping)
{
	uint64_t known = 0;

	if (!map_u64_get(&ids->sites, split_site(mapping, rel_pc), NULL))
		return false;
	if (mapping && !map_u64_get(&ids->mappings, mapping, &known))
		return false;
	*ret_mapping = (capture_id)known;
	return true;
}
