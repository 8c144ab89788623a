/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of several ranks, matched: which rank the others waited for, how long, and how long
 * the transfer itself took.
 *
 * Which belong together is known by the process group and its sequence number; where rows have
 * none, by their order and size within a profiler step. A collective ends on all its ranks at the
 * same time. So clocks need not agree: of one collective the rank whose part is shortest began
 * last, that part is the transfer, and by as much as the part of another is longer, that one
 * waited. The ends also give the error of each rank's clock, and show parts that do not belong
 * together.
 *
 * Broadcasts, sends and others in which a rank need not wait for all do not count. They are listed
 * with their size, and with their time, which has what they waited for others in it.
 */
#pragma once

#include "analyses/trace_view.h"

/* What one rank did in the collectives. */
struct collective_rank {
	uint32_t rank;
	uint64_t collectives; /* matched ones that it has a part in */
	uint64_t last;        /* in which it began last, and others noticeably waited for it */
	/* That all others waited for it, added. What a rank that began last had itself waited
	 * before, for a rank that they did not meet, counts there: collective_blame.c. */
	uint64_t caused_ns;
	uint64_t alone_ns;      /* of that, what one of them waited after all others had begun */
	uint64_t suffered_ns;   /* that it waited for others */
	uint64_t transfer_ns;   /* the rest of its parts */
	int64_t clock_error_ns; /* against the first rank's clock; see has_clock */
	bool has_clock;         /* collectives lead to the first rank, directly or over others */
};

/* Collectives of one kind, among the same ranks. */
struct collective_kind {
	const char *name;
	const char *kernel; /* "": the process group tells enough */
	const char *group;  /* the process group's name or description; "": not known */
	uint32_t ranks;     /* that have parts here */
	uint64_t count;
	int64_t elements; /* of a rank's input; TRACE_NO_NUMBER: not known, or several */
	int64_t bytes;    /* by collective_size.h, of each of them; TRACE_NO_NUMBER: not known */
	char algorithm[16], protocol[16]; /* of NCCL; "": not known */
	/* Of the time of the parts of devices, what no compute kernel of the rank ran beside; and
	 * the kernel that hid most of the others of this name; NULL: none. */
	uint64_t parts, parts_ns, exposed_ns;
	const char *hidden_by;
	bool is_call; /* of the host */
	uint64_t least_transfer_ns, most_transfer_ns;
	uint64_t transfer_ns;    /* in all */
	uint64_t waited_ns;      /* from the first rank's begin to the last one's, in all */
	uint32_t last_rank;      /* that began last most often */
	uint64_t last_rank_last; /* how often */
};

/* Parts of all ranks that do not count, of one name, group and size. Strings are the result's. */
struct collective_left_out {
	const char *name, *group; /* ""; likewise */
	int64_t bytes;            /* of each; TRACE_NO_NUMBER: not known */
	uint64_t parts, time_ns;
};

struct collectives {
	ARRAY_OF(struct collective_rank) ranks;        /* those that caused most first */
	ARRAY_OF(struct collective_kind) kinds;        /* those with most waiting first */
	ARRAY_OF(struct collective_left_out) left_out; /* those that took longest first */
	struct intern strings;                         /* of both */
	uint64_t matched;                              /* what all figures are of */
	uint64_t by_sequence;                          /* of them; the others by order */
	/* What does not count: parts of one rank only; matches whose ends lie apart; parts of
	 * operations that do not end together. */
	uint64_t unmatched, apart, one_sided;
	uint64_t absent; /* matched, that have or may have ranks that are not here */
	uint64_t shared; /* matched, whose size is that of the ranks that are here */
	/* Parts of NCCL's kernels in recordings, by what of their size is not known: by enum
	 * model_size_unknown. */
	uint64_t unsized[MODEL_SIZE_MAX];
	uint64_t end_error_ns; /* how far ends lie apart with clocks corrected: the median */
};

/*
 * Of the ranks of one run: one view of each, or of a recording with all of them. Nothing is matched
 * where there are not two. Returns 0 or -ENOMEM.
 */
int collectives_init(
	struct collectives *collectives, const struct trace_view *views, size_t view_count);
void collectives_done(struct collectives *collectives);
#define _cleanup_collectives_ _cleanup_(collectives_done)

/* Bytes in a second of all of a kind, without waiting, and as the bus sees it: collective_size.h.
 * NaN: not known. */
double collective_algorithm_bandwidth(const struct collective_kind *kind);
double collective_bus_bandwidth(const struct collective_kind *kind);

/* Sums over ranks. */
uint64_t collectives_waited_ns(const struct collectives *collectives);
uint64_t collectives_transfer_ns(const struct collectives *collectives);
