/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs database in a ClickHouse server, by HTTP: for fleets, where many machines add runs.
 * Servers from 18.16 on.
 *
 * ClickHouse has no transactions, so rows are only ever added. Each table of tables.h is a view of
 * the same name on a table "<name>_rows", which has further columns: `ingest` is the number of the
 * transaction that wrote the row, `version` says which row of a run or tag is the newest, and
 * `is_deleted` that it is gone. The views show rows of which the newest row of the run has the same
 * `ingest`. A run's own row is written last, in one block: before that nothing of it is seen, and
 * what a transaction that failed has left is never seen. Compaction removes such rows.
 *
 * A request that could not reach the server is sent again for ten seconds; so are those that only
 * read. Rows whose fate is not known (the connection broke) are not sent again: the transaction
 * fails with -ECONNRESET, and another one, with its own `ingest`, may write all of it anew.
 */
#pragma once

#include "store/store.h"

/* "http://host:8123/?database=sonde". The user and the password are those of $SONDE_STORE_USER and
 * $SONDE_STORE_PASSWORD, or of the file that $SONDE_STORE_PASSWORD_FILE names. Returns 0, or a
 * negative errno with a sentence. */
int store_clickhouse_open(
	struct store **ret_store, const char *address, enum store_mode mode, struct errmsg *err);
