/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills of memory, and how fast they were: HTA's memory bandwidth.
 *
 * Ours: by name, bytes over the time of the copies. HTA: by the first eleven letters of the name,
 * the sum of what the copies that run together move a second, at each moment where that changes;
 * its summary describes those values, each of them once.
 */
#pragma once

#include "analyses/statistics.h"
#include "analyses/trace_view.h"

struct copy_point {
	int64_t time_ns;
	double gbps; /* from then on: 10^9 bytes a second */
};

struct copies_row {
	const char *name;     /* HTA's: "Memcpy HtoD", "Memset", "Memcpy Unknown" */
	uint32_t name_length; /* bytes of it that count */
	uint64_t count, bytes;
	uint64_t without_bytes; /* copies that do not say how much they move: in `count` alone */
	double time_ns;         /* of those that do; finer than the rows where they say so */
	double least_gbps, most_gbps;
	uint32_t first, point_count;  /* of `points` */
	struct trace_describe points; /* HTA's summary: of points above 0 */
};

struct copies {
	ARRAY_OF(struct copies_row) rows; /* most time first; HTA's by name */
	ARRAY_OF(struct copy_point) points;
};

static inline double copies_gbps(const struct copies_row *row)
{
	return row->time_ns > 0 ? (double)row->bytes / row->time_ns : 0;
}

/* Returns 0 or -ENOMEM. */
int copies_init(struct copies *copies, const struct trace_view *view);
void copies_done(struct copies *copies);
#define _cleanup_copies_ _cleanup_(copies_done)
