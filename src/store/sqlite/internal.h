/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the SQLite backend share. */
#pragma once

#include <sqlite3.h>

#include "store/sqlite/sqlite.h"

#define STORE_APPLICATION_ID 0x736f6e64 /* "sond" */

struct sqlite_store {
	struct store store;
	sqlite3 *database;
	sqlite3_stmt *inserts[STORE_TABLE_MAX]; /* as they are needed */
	bool in_transaction;
};

/* The sentence and the errno of what SQLite just returned. */
int sqlite_failed(sqlite3 *database, const char *path, int status, struct errmsg *err);
/* SQL without parameters and rows. */
int sqlite_do(sqlite3 *database, const char *path, const char *sql, struct errmsg *err);
/* A pragma's integer. */
int sqlite_pragma(sqlite3 *database, const char *path, const char *sql, int64_t *ret_value,
	struct errmsg *err);

/* functions.c. Returns a status of SQLite. */
int sqlite_add_functions(sqlite3 *database);

extern const struct store_ops sqlite_ops;

/* SQL that takes the tables from version i to i + 1. What was released is never changed. */
extern const char *const sqlite_migrations[STORE_VERSION];
