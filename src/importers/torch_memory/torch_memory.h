/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept while a snapshot of PyTorch's memory is read: torch_memory.c and history.c. */
#pragma once

#include "importers/rows.h"
#include "importers/torch_memory/value.h"

#define SNAPSHOT_FRAMES      256 /* of a stack */
#define SNAPSHOT_FRAME_BYTES 512 /* of a name or a file */
/* Of one allocation: as many as a file can have do not overflow a sum. */
#define SNAPSHOT_MOST_BYTES ((int64_t)1 << 40)

/* A block that is in use when the snapshot is taken. */
struct snapshot_block {
	uint64_t address;
	int64_t bytes;   /* that were asked for */
	uint32_t others; /* string: its stack, as trace_memory.others has it */
};

struct snapshot_pool {
	uint64_t segments, free_blocks;
	int64_t reserved_bytes, active_bytes, free_bytes, largest_free;
};

struct snapshot_device {
	int64_t number;
	struct snapshot_pool pool;
	ARRAY_OF(struct snapshot_block) blocks;
};

struct snapshot {
	struct strbuf bytes;
	struct value_document document;
	struct import_rows rows;
	struct map_u64 stacks; /* list of frames → string */
	ARRAY_OF(struct snapshot_device) devices;
	uint64_t visits; /* of values that are left: a pickle may have one in many places */
};

/* Each returns 0 or a negative errno. */
int snapshot_find_device(
	struct snapshot *snapshot, int64_t number, struct snapshot_device **ret_device);
int snapshot_stack(struct snapshot *snapshot, const struct value *frames, uint32_t *ret_others);
/* Rows of all devices: what was there before, and the history. */
int snapshot_read_history(struct snapshot *snapshot);
