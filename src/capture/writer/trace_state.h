/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the writer of traces share: trace.c has the trace and its tracks, trace_rows.c
 * the rows. Nothing else includes this.
 */
#pragma once

#include "base/map.h"
#include "capture/protobuf.h"
#include "capture/row_state.h"
#include "capture/writer/state.h"
#include "capture/writer/trace.h"

enum text_table { TEXT_NAME, TEXT_CATEGORY, TEXT_ANNOTATION, TEXT_SPECIFICATION, TEXT_TABLE_MAX };

/* Which iid a string has on a sequence: tables are not emptied when a sequence begins. */
struct text_iid {
	uint32_t sequence, iid;
};

struct capture_trace_writer {
	struct capture_writer *writer;
	const struct intern *strings;
	uint64_t begin_ns, unit_ns;
	/* Event ids are the one base and the correlation, or the other and a count. */
	uint64_t event_id_base, uncorrelated_base, uncorrelated_count;
	struct text_iid *iids[TEXT_TABLE_MAX]; /* by string */
	uint32_t iid_counts[TEXT_TABLE_MAX];
	struct strbuf pending; /* interned data for the next packet */
	struct row_state state;
	uint64_t argument_names; /* ROW_BIT()s of those that the sequence has */
	/* The sequence that is being written; 0: none. */
	uint32_t sequence;
	bool is_long;
	uint64_t last_ns; /* of a long track's clock */
	struct capture_trace_track track;
	uint64_t queue_iid, lane_count;
	struct map_u64 contexts; /* pid → the sequence that knows it */
};

static inline void put_nonzero(struct strbuf *out, uint32_t number, uint64_t value)
{
	if (value)
		pb_put_u64(out, number, value);
}

/* A new entry of a table, in the interned data of the next packet. */
uint64_t trace_put_interned(
	struct capture_trace_writer *trace, enum text_table table, const char *text);
/* That of a string on this sequence, which is interned when it is new there. */
uint64_t trace_text_iid(struct capture_trace_writer *trace, enum text_table table, uint32_t string);
uint64_t trace_lane_uuid(const struct capture_trace_writer *trace, uint64_t lane);
void trace_name_track(const struct capture_trace_track *track, struct strbuf *out);
/* Returns 0 or a negative errno. */
int trace_describe_lane(struct capture_trace_writer *trace, uint64_t lane);
