/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two folders with a file for each rank, paired by the rank that the files say, or else that in
 * their names: the number after "rank" or "worker", or else the last one that is no time:
 * "et_0.json.gz", "kineto.0.json", "worker3_step_12.1700000000000.pt.trace.json".
 */
#pragma once

#include "base/array.h"
#include "base/errmsg.h"
#include "base/strbuf.h"

struct rank_pair {
	uint32_t rank;
	char *host, *device, *output;
};

struct rank_pairs {
	ARRAY_OF(struct rank_pair) items; /* by rank */
	struct strbuf missing;            /* a sentence on ranks that have one file; empty: none */
};

/* True where the file's name has a rank. */
bool rank_of_name(const char *name, uint32_t *ret_rank);

struct rank_pairs_options {
	const char *host_folder, *device_folder; /* may be one */
	/* Which files of a folder are meant. */
	bool (*is_host)(const char *path);
	bool (*is_device)(const char *path);
	/* The rank that a file says; NULL: names have it. */
	bool (*rank_of_device)(const char *path, uint32_t *ret_rank);
	const char *output;         /* a folder, which is made */
	const char *before, *after; /* of the rank, in the names of its files */
};

/* Returns 0 or a negative errno with a sentence, -ENODATA when no rank has both files. */
int rank_pairs_find(
	struct rank_pairs *pairs, const struct rank_pairs_options *options, struct errmsg *err);
void rank_pairs_done(struct rank_pairs *pairs);
#define _cleanup_rank_pairs_ _cleanup_(rank_pairs_done)
