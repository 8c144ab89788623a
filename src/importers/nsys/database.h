/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An SQLite database of somebody else's, read table by table. Nothing is written, locked or made
 * beside the file, views and virtual tables of it are not looked into, and a damaged one ends in an
 * error code. The file is read by its descriptor: as it was opened, wherever it lies.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/macros.h"

struct nsys_database {
	sqlite3 *handle;
	int fd;
	uint64_t rows_left; /* each takes bytes of the file: more are pages that are read again */
};

/* Returns 0 or a negative errno with a sentence. */
int nsys_database_open(struct nsys_database *ret_database, const char *path, struct errmsg *err);
void nsys_database_close(struct nsys_database *database);
#define _cleanup_nsys_database_ _cleanup_(nsys_database_close)

/*
 * Begins to read these columns of a table, ended by NULL. Which of them a table has depends on the
 * release that wrote it: a column that it lacks is NULL in each row. *ret_statement is NULL where
 * there is no such table, or not the first of the columns. Returns 0 or a negative errno.
 */
int nsys_select(struct nsys_database *database, const char *table, const char *const *columns,
	sqlite3_stmt **ret_statement);
/* The next row: 1, 0 at the end, or a negative errno: -EBADMSG when the file is damaged. */
int nsys_next(struct nsys_database *database, sqlite3_stmt *statement);
/* Of a column: `otherwise` where it is NULL. */
int64_t nsys_number(sqlite3_stmt *statement, int column, int64_t otherwise);
/* How many rows there are: 0 where there is no such table. Returns 0 or a negative errno. */
int nsys_count(struct nsys_database *database, const char *table, uint64_t *ret_count);

void nsys_statement_done(sqlite3_stmt **statement);
#define _cleanup_statement_ _cleanup_(nsys_statement_done)
