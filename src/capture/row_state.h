/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the writer and the reader of TraceRow remember of a sequence's rows: fields are written as
 * how they differ from the row before that has them.
 */
#pragma once

#include "capture/trace_rows.h"

enum row_coding {
	ROW_CODING_SAME,   /* absent: as before; else what is added */
	ROW_CODING_NEXT,   /* absent: one more; else what is added */
	ROW_CODING_STRIDE, /* absent: what was added the last time; else what is added */
	ROW_CODING_TEXT,   /* absent: as before; else the iid of a debug_annotation_string_value */
};

/* Those that most often count on. */
#define ROW_NEXT                                                                                   \
	(ROW_BIT(ROW_EXTERNAL_ID) | ROW_BIT(ROW_RF_ID) | ROW_BIT(ROW_EV_IDX) |                     \
		ROW_BIT(ROW_CORRELATION) | ROW_BIT(ROW_PYTHON_ID) | ROW_BIT(ROW_GRAPH_NODE) |      \
		ROW_BIT(ROW_COLLECTIVE_SEQUENCE))

static inline enum row_coding row_coding(unsigned field)
{
	if (ROW_TEXTS & ROW_BIT(field))
		return ROW_CODING_TEXT;
	if (ROW_NEXT & ROW_BIT(field))
		return ROW_CODING_NEXT;
	return field == ROW_FILE_INDEX ? ROW_CODING_STRIDE : ROW_CODING_SAME;
}

/* The key of the layout of stages; slices and moments have one for each category's iid. */
#define ROW_STAGES UINT64_MAX

struct row_state {
	uint64_t previous[ROW_FIELD_MAX], stride;
	uint32_t category;      /* of the stage before */
	struct map_u64 layouts; /* iid of the category → that of its row before */
};

void row_state_clear(struct row_state *state);
void row_state_done(struct row_state *state);

/* Signed numbers with few bits become small ones. */
static inline uint64_t zigzag(uint64_t value)
{
	return value << 1 ^ -(value >> 63);
}

static inline uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ -(value & 1);
}
