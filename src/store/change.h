/* SPDX-License-Identifier: Apache-2.0 */
/* What changes runs that are there: labels, and their end. */
#pragma once

#include "store/documents.h"

/* Gives the run these tags and takes those. Returns 0 or a negative errno with a sentence, like all
 * of these. */
int store_tag(struct store *store, const struct run_row *row, const char *const *added,
	size_t added_count, const char *const *removed, size_t removed_count, struct errmsg *err);
/* NULL or "": it has none any more. */
int store_note(
	struct store *store, const struct run_row *row, const char *note, struct errmsg *err);

/* What a run's labels become: all that are given, or none. */
struct store_edit {
	bool has_tags, has_note, has_experiment;
	const char *const *tags; /* all that it has then */
	size_t tag_count;
	const char *note, *experiment; /* NULL or "": none */
};
int store_edit(struct store *store, const struct run_row *row, const struct store_edit *edit,
	struct errmsg *err);

/* With all that belongs to them, all or none. Their captures stay. */
int store_delete(struct store *store, const struct run_rows *rows, struct errmsg *err);
/*
 * Removes the capture of a run, if its content is still that of the run: another file that has its
 * path by now is left, as is a link. -ENOENT: it is gone already; -EEXIST: it is another file.
 */
int store_remove_capture(const struct run_row *row, struct errmsg *err);

/* Which runs are to go: all but the newest, and those that are too old. 0: no such limit. */
struct store_retention {
	uint64_t keep;
	int64_t max_age_ns;
};

/*
 * By the time of the recording, or of the ingest where that is earlier (a clock may be wrong) or
 * the only one known. Appends those that go.
 */
int store_find_expired(struct store *store, const struct store_retention *retention,
	struct run_rows *rows, struct errmsg *err);

/* ---- what goes, or went, as a document: removed.c ---- */

/* `is_done`: they were deleted; else they would be. Returns 0 or a negative errno with a sentence.
 */
int store_removed(struct store *store, const struct run_rows *rows, bool is_done,
	struct result *result, struct errmsg *err);
int store_removed_schema(struct strbuf *out);
