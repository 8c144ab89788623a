/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture becomes a run: its row, the values of every section of its report, and its requests,
 * tokens, layers and readings of power. In one transaction, so that a run is there as a whole or
 * not at all. The file stays where it is; the run knows its path.
 */
#pragma once

#include "analyses/inference/cost.h"
#include "store/store.h"

/* What the user says of a capture. NULL: nothing. */
struct store_labels {
	const char *const *tags;
	size_t tag_count;
	const char *experiment, *commit, *notes;
	struct energy_rates rates;
	size_t rows; /* of each table of a section that are kept, at most */
};

#define STORE_ID_CHARACTERS 32

struct store_added {
	char id[STORE_ID_CHARACTERS + 1];
	bool was_there; /* and only got the labels */
	uint64_t rows;  /* that were written */
};

/*
 * The same content is the same run, whatever its path: added again, it gets the labels and the
 * path. Warns of a capture from the future. Returns 0 or a negative errno with a sentence.
 */
int store_add(struct store *store, const char *path, const struct store_labels *labels,
	struct store_added *ret_added, struct errmsg *err);

/* ---- parts ---- */

/* The id that a regular file has. Returns 0 or a negative errno with a sentence. */
int store_identify(const char *path, char ret_id[STORE_ID_CHARACTERS + 1], struct errmsg *err);
/* The number of a name of figures, by the name: the same in every store. */
int64_t store_figure_name_of(const char *section, const char *path, const char *column);
/* The number of a run, by its id. */
int64_t store_number_of(const char *id);
/* The tags of a run; those that it has stay. */
int store_add_tags(struct store *store, int64_t number, const char *const *tags, size_t count,
	struct errmsg *err);
