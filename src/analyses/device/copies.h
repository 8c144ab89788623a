/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills of memory, and how fast they were: by name, bytes over the time of the copies;
 * and the sum of what the copies that run together move a second, at each moment where that
 * changes.
 */
#pragma once

#include "analyses/statistics.h"
#include "analyses/trace_order.h"
#include "analyses/trace_view.h"

struct copy_point {
	int64_t time_ns;
	double gbps; /* from then on: 10^9 bytes a second */
};

struct copies_row {
	const char *name;
	uint32_t name_length; /* bytes of it that count */
	uint64_t count, bytes;
	uint64_t without_bytes; /* copies that do not say how much they move: in `count` alone */
	double time_ns;         /* of those that do; finer than the rows where they say so */
	double least_gbps, most_gbps;
	uint32_t first, point_count;  /* of `points` */
	struct trace_describe points; /* of those above 0, each of them once */
};

struct copies {
	ARRAY_OF(struct copies_row) rows; /* most time first */
	ARRAY_OF(struct copy_point) points;
};

static inline double copies_gbps(const struct copies_row *row)
{
	return row->time_ns > 0 ? (double)row->bytes / row->time_ns : 0;
}

/* Returns 0 or -ENOMEM. */
int copies_init(struct copies *copies, const struct trace_view *view);

/* What another tool may define otherwise. */
struct copies_definition {
	/* Of a copy's name, the row that it belongs to. */
	const char *(*row_name)(const char *name, size_t *ret_length);
	int64_t shortest_ns; /* what a copy of no length takes */
	bool works_out_gbps; /* of bytes and time, where the trace does not say it */
	trace_order *order;  /* of the points */
};
int copies_init_as(struct copies *copies, const struct trace_view *view,
	const struct copies_definition *definition);
void copies_done(struct copies *copies);
#define _cleanup_copies_ _cleanup_(copies_done)
