/* SPDX-License-Identifier: Apache-2.0 */
/* What splitting a capture remembers between packets and readings. */
#pragma once

#include "capture/split/tables.h"

struct split_part {
	struct capture_window window; /* label: the tables' */
	char *path;
	struct capture_writer *writer; /* NULL: before and after its batch */
	bool was_made;                 /* its file, by us */
	struct split_ids ids;
	uint64_t samples, wait_samples;
};

/* A stack that later launches have, too. */
struct shared_stack {
	uint64_t time_ns;
	capture_id callstack;
	uint32_t tid;
};

struct split {
	const char *path;
	const struct capture_writer_options *options;
	struct split_tables tables;
	ARRAY_OF(struct split_part) parts; /* by their begins */
	size_t first, end;                 /* the batch */
	uint64_t accounts, accounts_seen;  /* the last of these counts */
	/* By split_launch_key(): launches whose stacks others have; those that are no work of their
	 * own, but what a graph is made of, and may be of use to all that follow. */
	struct map_u64 shared_index, definitions;
	ARRAY_OF(struct shared_stack) shared;
	/* By the track of a range event: its domain, an index, and its number among tracks. */
	struct map_u64 track_domains, track_numbers;
	ARRAY_OF(const char *) domains;
};

/* Each part of the batch. */
#define for_batch(split, part)                                                                     \
	for (struct split_part *part = (split)->parts.items + (split)->first;                      \
		part < (split)->parts.items + (split)->end; part++)

static inline uint64_t split_launch_key(uint32_t pid, uint64_t correlation)
{
	return hash_u64(correlation ^ hash_u64(pid));
}

/* The reading that hands what happened to the parts of the batch. */
extern const struct capture_visitor split_events;
