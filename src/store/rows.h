/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as they are in the database, in memory: which are meant, and their rows. */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "store/store.h"

/* Which runs. NULL, 0: any. */
struct store_filter {
	const char *model, *experiment, *engine, *commit; /* "*" in them stands for anything */
	const char *search;                               /* in path, command, notes, model */
	const char *const *tags;                          /* with all of these */
	size_t tag_count;
	int64_t since_ns, until_ns; /* Unix time */
};

struct store_order {
	const char *column; /* of runs; NULL: time_ns */
	bool rising;
	uint64_t limit; /* 0: all */
	uint64_t offset;
};

struct run_row {
	struct store_value values[STORE_RUN_COLUMN_MAX];
	uint32_t first_tag, tag_count;
};

/* Zero-initialise. */
struct run_rows {
	ARRAY_OF(struct run_row) items;
	ARRAY_OF(const char *) tags;
	struct intern texts;
};

void run_rows_done(struct run_rows *rows);
#define _cleanup_run_rows_ _cleanup_(run_rows_done)

/* Appends those that the filter leaves, in that order, with their tags. `order` NULL: newest first.
 */
int store_read_runs(struct store *store, const struct store_filter *filter,
	const struct store_order *order, struct run_rows *rows, struct errmsg *err);
/* How many the filter leaves. */
int store_count_runs(struct store *store, const struct store_filter *filter, int64_t *ret_count,
	struct errmsg *err);
/* Appends the run of that id, of which the beginning is enough where it is the only one; of that
 * path; or the newest: "latest". -ENOENT, -EEXIST (several) with a sentence. */
int store_find_run(
	struct store *store, const char *name, struct run_rows *rows, struct errmsg *err);

/* ---- for queries of one's own ---- */

struct store_sql {
	struct strbuf text;
	ARRAY_OF(struct store_value) parameters;
	ARRAY_OF(char *) patterns;
	bool reads_all; /* a text is looked for: no index of the order helps, and to go by it costs
			 */
};

void store_sql_done(struct store_sql *sql);
#define _cleanup_store_sql_ _cleanup_(store_sql_done)
/* " WHERE …", or nothing. Returns 0 or -ENOMEM. */
int store_sql_add_filter(struct store_sql *sql, const struct store_filter *filter);
void store_sql_add_order(struct store_sql *sql, const struct store_order *order);
int store_sql_run(struct store *store, const struct store_sql *sql, store_row_function *take,
	void *context, struct errmsg *err);

static inline const char *run_text(const struct run_row *row, enum store_run_column column)
{
	return store_as_text(&row->values[column]);
}

static inline double run_number(const struct run_row *row, enum store_run_column column)
{
	return store_as_number(&row->values[column]);
}

static inline int64_t run_key(const struct run_row *row)
{
	return row->values[STORE_RUN_NUMBER].integer;
}
