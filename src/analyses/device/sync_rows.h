/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits (syncs.h) by what they were for and where in the program they stand: the line of the call,
 * where its stack was recorded, or else of a sample that was taken in it; of a stream's wait the
 * line that launched the work that waited; and the innermost operator, annotation or Python
 * function around the call. Calls that block (blocking.h) without a row of what they wait for are
 * there, too, but for allocations: of recordings all, of other traces where they have rows of
 * waits.
 */
#pragma once

#include "analyses/device/syncs.h"

struct sync_row {
	enum device_sync_kind kind;
	const char *target; /* of the syncs */
	const char *name;   /* of the row around the call, the trace's; NULL: there is none */
	enum trace_category category;
	uint32_t frame; /* of the recording; MODEL_NONE: not known */
	uint32_t stack; /* likewise: of the longest */
	uint64_t count;
	uint64_t unknown; /* of these: how long they waited is not known */
	int64_t time_ns, most_ns;
};

struct sync_rows {
	struct device_syncs syncs;
	ARRAY_OF(struct sync_row) rows; /* most time first */
};

/* Returns 0 or -ENOMEM. */
int sync_rows_init(struct sync_rows *rows, const struct trace_view *view);
void sync_rows_done(struct sync_rows *rows);
#define _cleanup_sync_rows_ _cleanup_(sync_rows_done)
