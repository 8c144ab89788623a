/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a split capture's parts share: copies of its mappings, frames and callstacks by their ids,
 * and for each part which of them it has.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "capture/writer/writer.h"

struct split_callstack {
	uint32_t first, count;
	enum wire_stop stop;
	enum wire_python python;
};

/* Items by capture id - 1. */
struct split_tables {
	struct intern texts;
	ARRAY_OF(struct capture_mapping) mappings; /* texts and build ids are those of `texts` */
	ARRAY_OF(struct capture_frame) frames;
	ARRAY_OF(struct split_callstack) callstacks;
	ARRAY_OF(capture_id) callstack_frames;
};

/* A part's own ids. */
struct split_ids {
	struct map_u64 mappings, frames; /* id of the capture → id of the part */
	struct map_u64 callstacks;       /* likewise, from twice the id, and 1 for samples */
	struct map_u64 sites;            /* split_site() of its frames */
};

/* All return 0 or -ENOMEM. */
int split_tables_add_mapping(struct split_tables *tables, const struct capture_mapping *mapping);
int split_tables_add_frame(struct split_tables *tables, const struct capture_frame *frame);
int split_tables_add_callstack(struct split_tables *tables, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python);
/* A lasting copy; "" for NULL. */
int split_tables_text(struct split_tables *tables, const char *text, const char **ret_text);
void split_tables_done(struct split_tables *tables);

/*
 * The part's id of a callstack, which is written when it has none yet; 0 stays 0. Those of samples
 * are interned again for the first one, as capture_writer_sample() wants it.
 */
int split_callstack(const struct split_tables *tables, struct split_ids *ids,
	struct capture_writer *writer, capture_id callstack, bool is_sampled, capture_id *ret_id);
/* The same for a stack that is not in the tables, but its frames are; `found` has their count. */
int split_frames(const struct split_tables *tables, struct split_ids *ids,
	struct capture_writer *writer, const capture_id *frames,
	const struct split_callstack *found, capture_id *ret_id);
/* Whether the part has a frame at this address, and its id of the mapping. */
bool split_has_site(
	const struct split_ids *ids, capture_id mapping, uint64_t rel_pc, capture_id *ret_mapping);
void split_ids_done(struct split_ids *ids);
