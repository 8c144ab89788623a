/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives that the host waits for, as ranges of a program: gloo's, MPI's, barriers. Their parts
 * are the times of the calls; the calls of one collective return on all ranks at about one time.
 */
#pragma once

#include "analyses/collectives/match.h"

struct collective_call {
	struct collective_rank_key rank;
	const char *name;                    /* "all_reduce" */
	const char *group;                   /* NULL: not known */
	int64_t group_size, sequence, bytes; /* TRACE_NO_NUMBER: not known */
	uint64_t step;                       /* RANK_NO_STEP: of none */
	int64_t start_ns, end_ns;
};

/* Is a range of this name a call in which every rank waits for all others: "all_reduce",
 * "gloo:all_gather", "barrier"? */
bool collective_is_call(const char *name);

/* Fields of ranges, as sonde's hooks of PyTorch fill them in. */
#define COLLECTIVE_ASYNC      "async"
#define COLLECTIVE_BYTES      "bytes"
#define COLLECTIVE_GROUP      "group"
#define COLLECTIVE_GROUP_SIZE "group_size"
#define COLLECTIVE_SEQUENCE   "sequence"

/* Both return 0 or -ENOMEM. `kinds`: of all calls of one `matches`. */
int collective_calls_add(struct collective_matches *matches, struct intern *kinds,
	const struct collective_call *call);
/* Matches the parts that are there, and estimates clocks. */
int collective_matches_finish(struct collective_matches *matches);
