/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs database. A store is opened by its address, read and written with SQL of one subset
 * through the backend's `struct store_ops`, so that every query is written once. Backends: SQLite
 * (sqlite/sqlite.h), ClickHouse (clickhouse/clickhouse.h). What is asked of it stands in files of
 * their own: ingest/ adds captures, list.h and others read.
 *
 * The subset: SELECT with WHERE, JOIN … USING, GROUP BY, ORDER BY … NULLS LAST, LIMIT, IN with a
 * query; count, min, max, lower, coalesce, "||", positionCaseInsensitive(text, wanted); parameters
 * ?1, ?2 …. LIKE has no case in one backend and has it in another: lower() both sides, and write
 * ESCAPE '\'. OR only within parentheses. A "+" before a column keeps SQLite from using its index.
 *
 * To add a backend: a folder with its ops, and a line in store_open(). Its tables are those of
 * tables.h. The tests of tests/e2e/test_runs.py that take `store` run against every one.
 *
 * A store is used by one thread. All texts are parameters, never part of the SQL.
 */
#pragma once

#include <stdbool.h>

#include "base/errmsg.h"
#include "store/tables.h"

struct store;

/* A row of a query; its texts are valid until it returns. Not 0: the query ends with that. */
typedef int store_row_function(void *context, const struct store_value *values, size_t count);

/* What store_check() found. */
typedef void store_fault_function(void *context, const char *sentence);

struct store_change {
	enum store_run_column column;
	struct store_value value;
};

/* All return 0 or a negative errno with a sentence: -EBUSY, -EROFS, -ENOSPC, -EBADMSG (damaged),
 * -ECONNRESET (the connection broke while a transaction was written: it may be begun anew). */
struct store_ops {
	void (*close)(struct store *store);
	/* Others do not write until the end. What was not committed never happened. */
	int (*begin)(struct store *store, struct errmsg *err);
	int (*commit)(struct store *store, struct errmsg *err);
	void (*rollback)(struct store *store);
	/* A row in the columns of the table. A name of figures or a tag that is there is left as it
	 * is. -EEXIST: the row does not fit its table. */
	int (*insert)(struct store *store, enum store_table_id table,
		const struct store_value *values, struct errmsg *err);
	/* Columns of a run get other values: once for a run in a transaction. No fault where the
	 * run is not there. */
	int (*update_run)(struct store *store, int64_t run, const struct store_change *changes,
		size_t count, struct errmsg *err);
	/* NULL: all tags of the run. */
	int (*delete_tag)(struct store *store, int64_t run, const char *tag, struct errmsg *err);
	/* With all rows that are theirs. */
	int (*delete_runs)(
		struct store *store, const int64_t *runs, size_t count, struct errmsg *err);
	/* A query; it changes nothing, and need not see what the transaction has changed. Rows go
	 * to `take`, which may be NULL. */
	int (*run)(struct store *store, const char *sql, const struct store_value *parameters,
		size_t count, store_row_function *take, void *context, struct errmsg *err);
	/* Every fault of the file, and of references between tables. */
	int (*check)(
		struct store *store, store_fault_function *say, void *context, struct errmsg *err);
	/* Bytes that it takes, with its log. */
	int (*bytes)(struct store *store, uint64_t *ret_bytes, struct errmsg *err);
	/* Gives space of what was deleted back. */
	int (*compact)(struct store *store, struct errmsg *err);
};

struct store {
	const struct store_ops *ops;
	char *address; /* as messages say it */
};

enum store_mode {
	STORE_READ,  /* it must exist */
	STORE_WRITE, /* made where it is missing */
};

/* `address`: a file; "http://…" or "https://…": a ClickHouse server; NULL: the user's own file,
 * "$XDG_STATE_HOME/sonde/runs.db". */
int store_open(
	struct store **ret_store, const char *address, enum store_mode mode, struct errmsg *err);
struct store *store_close(struct store *store);
void store_closep(struct store **store);
#define _cleanup_store_ _cleanup_(store_closep)

/* ---- queries ---- */

#define STORE_PARAMETERS(...)                                                                      \
	(const struct store_value[])                                                               \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define store_run(store, sql, take, context, err, ...)                                             \
	(store)->ops->run((store), (sql), STORE_PARAMETERS(__VA_ARGS__),                           \
		ARRAY_SIZE(STORE_PARAMETERS(__VA_ARGS__)), (take), (context), (err))
/* Without parameters. */
int store_select(struct store *store, const char *sql, store_row_function *take, void *context,
	struct errmsg *err);
/* The first value of the first row: an integer; 0 where there is none. */
int store_count(struct store *store, const char *sql, const struct store_value *parameters,
	size_t count, int64_t *ret_count, struct errmsg *err);
