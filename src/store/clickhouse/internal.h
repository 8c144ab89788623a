/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the ClickHouse backend share. */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "store/clickhouse/clickhouse.h"

/* What a transaction has still to send. */
struct clickhouse_batch {
	bool is_open;
	uint64_t version, ingest;
	struct strbuf rows[STORE_TABLE_MAX]; /* RowBinary */
	struct map_u64 runs;                 /* that it adds */
	struct map_u64 names;                /* of figures that it adds */
};

struct clickhouse_store {
	struct store store;
	char *url; /* scheme, host and path */
	char *database;
	char *user, *password; /* NULL: the server's default */
	bool is_old;           /* knows no parameters, and must be asked to look into views */
	struct clickhouse_batch batch;
};

static inline struct clickhouse_store *clickhouse_of(struct store *store)
{
	return (struct clickhouse_store *)store;
}

/* ---- sql.c ---- */

/*
 * SQL of the subset (store.h) for ClickHouse. Parameters become "{p1:Int64}", with their values in
 * `url` as "&param_p1=…"; with `is_old`, or where a text is long, they become literals. Returns 0
 * or -ENOMEM.
 */
int clickhouse_translate(const char *sql, const struct store_value *parameters, size_t count,
	bool is_old, struct strbuf *out, struct strbuf *url);
/* A literal that stands for this value and nothing else. */
void clickhouse_add_literal(struct strbuf *out, const struct store_value *value);
/* As a part of a URL. */
void clickhouse_add_quoted(struct strbuf *out, const char *text);

/* ---- answer.c ---- */

#define CLICKHOUSE_COLUMNS_MOST 128

/* Rows in the format TabSeparatedWithNamesAndTypes, as bytes arrive. Zero-initialise with `take`,
 * which may be NULL, and `context`. */
struct clickhouse_answer {
	store_row_function *take;
	void *context;
	struct strbuf line; /* that has no end yet */
	unsigned heads;     /* of the two that were read */
	size_t columns;
	enum store_type types[CLICKHOUSE_COLUMNS_MOST];
	uint64_t rows;
	int taken; /* what `take` returned: not 0 ends the answer */
};

/* Returns 0; -EPROTO: it is no such answer; -ENOMEM; -ECANCELED: `taken`. */
int clickhouse_answer_read(struct clickhouse_answer *answer, const char *bytes, size_t length);
/* Is it complete? Returns 0 or -EPROTO. */
int clickhouse_answer_end(const struct clickhouse_answer *answer);
void clickhouse_answer_done(struct clickhouse_answer *answer);
#define _cleanup_clickhouse_answer_ _cleanup_(clickhouse_answer_done)

/* ---- request.c: all return 0 or a negative errno with a sentence ---- */

/* Rows of SQL of the subset. */
int clickhouse_ask(struct clickhouse_store *clickhouse, const char *sql,
	const struct store_value *parameters, size_t count, store_row_function *take, void *context,
	struct errmsg *err);
/* ClickHouse's own SQL, without rows, which may be sent twice. */
int clickhouse_do(struct clickhouse_store *clickhouse, const char *sql, struct errmsg *err);
/* Before the database is there. */
int clickhouse_do_outside(struct clickhouse_store *clickhouse, const char *sql, struct errmsg *err);
/* Rows in RowBinary. -ECONNRESET: they may be there or not. */
int clickhouse_send(struct clickhouse_store *clickhouse, const char *insert,
	const struct strbuf *rows, struct errmsg *err);

/* ---- tables.c ---- */

/* The columns of table "<name>_rows" that its rows in RowBinary have: "run, name, …, ingest". */
void clickhouse_add_columns(struct strbuf *out, enum store_table_id table);
bool clickhouse_has_version(enum store_table_id table); /* and is_deleted */
bool clickhouse_is_required(enum store_table_id table, size_t column);
/* Makes what is missing. */
int clickhouse_make_tables(struct clickhouse_store *clickhouse, struct errmsg *err);

/* ---- batch.c ---- */

struct clickhouse_mark {
	uint64_t ingest;
	bool is_deleted;
};

/* Appends a row to the batch. -EEXIST: it does not fit the table. */
int clickhouse_batch_add(struct clickhouse_store *clickhouse, enum store_table_id id,
	const struct store_value *values, const struct clickhouse_mark *mark, struct errmsg *err);
/* Sends all of it, runs last. */
int clickhouse_batch_send(struct clickhouse_store *clickhouse, struct errmsg *err);
void clickhouse_batch_clear(struct clickhouse_batch *batch);
void clickhouse_batch_done(struct clickhouse_batch *batch);

extern const struct store_ops clickhouse_ops;
