/* SPDX-License-Identifier: Apache-2.0 */
/* Of collectives.c: the parts that ranks have in collectives, and which belong together. */
#pragma once

#include "analyses/collectives/overlap.h"
#include "analyses/program/rank_steps.h"

/* Two traces may say that they are of one rank. */
struct collective_rank_key {
	uint32_t rank;
	uint32_t view; /* index; of a recording 0 */
};

/* One rank's part in a collective. */
struct collective_part {
	uint32_t kind; /* index in `kinds` */
	uint32_t rank; /* id in `ranks` */
	uint64_t step; /* RANK_NO_STEP: of none, or steps do not count */
	int64_t sequence;
	uint32_t number; /* among equals, in the order of the rank's work */
	uint32_t kernel; /* string; 0: of no device */
	int64_t start_ns, end_ns;
	int64_t bytes;      /* of the message, as NCCL counts it; TRACE_NO_NUMBER: not known */
	int64_t exposed_ns; /* without a compute kernel beside it */
	bool is_call;       /* of the host, which waits in it */
	bool is_share;      /* `bytes` are one rank's, of a message that has them of all ranks */
};

/* What all parts of a match have in common; compared as bytes. Strings of `strings`. */
struct collective_match_kind {
	int64_t elements;           /* TRACE_NO_NUMBER: not known, or they may differ */
	int64_t group_size;         /* TRACE_NO_NUMBER: not known */
	uint32_t has_sequence;      /* of the process group */
	uint32_t has_bytes;         /* elements are bytes: of what type they are is not known */
	uint32_t name, kernel;      /* the kernel counts where there is no group */
	uint32_t group, group_name; /* all that tells it, and the name alone; 0: not known */
};

/* Parts of different ranks: parts.items[first] … */
struct collective_match {
	uint32_t first, count;
	int64_t bytes; /* of the largest part; TRACE_NO_NUMBER: not known */
	bool apart;    /* their ends: they do not belong together */
};

/* What the ends say about a rank's clock: it shows a time T of the first rank's as
 * T + error_ns + drift × (T - middle_ns). */
struct collective_clock {
	int64_t error_ns;
	double drift;
	bool is_known; /* from the first rank, directly or over others */
};

/* Parts that are left out because a rank need not wait for all in them: of one name, group and
 * size.
 */
struct collective_left_out_key {
	int64_t bytes; /* TRACE_NO_NUMBER: not known */
	uint32_t name, group_name;
};
struct collective_left_out_parts {
	struct collective_left_out_key key;
	uint64_t count, time_ns;
};

struct collective_matches {
	struct intern strings;
	struct intern ranks; /* keys are struct collective_rank_key */
	ARRAY_OF(struct collective_match_kind) kinds;
	ARRAY_OF(struct collective_part) parts;
	ARRAY_OF(struct collective_match) items;
	struct collective_covers covers;
	struct collective_clock *clocks; /* by id of the rank */
	int64_t middle_ns;
	struct intern left_out_keys; /* → index in left_out */
	ARRAY_OF(struct collective_left_out_parts) left_out;
	uint64_t one_sided, unmatched, apart, end_error_ns;
	uint64_t unsized[MODEL_SIZE_MAX]; /* parts of NCCL's kernels, by enum model_size_unknown */
	uint64_t shared; /* matches that have as many ranks as are here: see is_share */
};

/* Returns 0 or -ENOMEM. */
int collective_matches_init(
	struct collective_matches *matches, const struct trace_view *views, size_t view_count);
void collective_matches_done(struct collective_matches *matches);
#define _cleanup_collective_matches_ _cleanup_(collective_matches_done)

/* Estimates clocks of the matches, and marks those whose ends lie apart. Likewise. */
int collective_clocks_find(struct collective_matches *matches);

/* Splits ranks that have collectives of their own, where groups are not known: their parts get
 * a kind of their own. Likewise. */
int collective_clusters_split(struct collective_matches *matches);

/* Of a collective's or a kernel's name: need a rank not wait for all others in it? */
bool collective_is_one_sided(const char *name);

/* Returns 0 or -ENOMEM: parts of all views, in no order. */
int collective_parts_find(
	struct collective_matches *matches, const struct trace_view *views, size_t view_count);
/* Which comes first in the order of a rank's work of one kind? 0: they belong together. */
int collective_parts_compare(const struct collective_part *a, const struct collective_part *b);

/* A line through points, robust against a half of them: value_ns + slope × (time - middle_ns).
 * Points are by time, and are changed. */
struct collective_point {
	int64_t time_ns, value_ns;
};
struct collective_line {
	int64_t middle_ns, value_ns;
	double slope;
	int64_t error_ns; /* distance of the points: the median */
};
struct collective_line collective_line_of(struct collective_point *points, size_t count);
/* Times are what files say: sums may wrap, and what is no time becomes the largest. */
static inline int64_t collective_ns_of(double ns)
{
	const double most_ns = 9e18;

	return (int64_t)MIN(MAX(ns, -most_ns), most_ns);
}
static inline int64_t collective_shift_ns(int64_t time_ns, double by_ns)
{
	return trace_add_ns(time_ns, collective_ns_of(by_ns));
}
/* A negative duration is wrong: it counts as 0. */
static inline int64_t collective_part_ns(const struct collective_part *part)
{
	return MAX(trace_difference_ns(part->end_ns, part->start_ns), (int64_t)0);
}
int64_t collective_median_ns(int64_t *values, size_t count); /* sorts them */

/* Adds to caused_ns[], by id of the rank, how long others waited for it in all matches. Likewise.
 */
int collective_blame(const struct collective_matches *matches, uint64_t *caused_ns);
