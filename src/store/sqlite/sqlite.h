/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs database as a file of SQLite: a write-ahead log, so that readers do not wait; references
 * that are enforced, so that a run takes all that is its own with it; STRICT tables.
 */
#pragma once

#include "store/store.h"

/* Takes no link in the last part of the path; makes a missing file with mode 0600. Returns 0, or a
 * negative errno with a sentence. */
int store_sqlite_open(
	struct store **ret_store, const char *path, enum store_mode mode, struct errmsg *err);
/* How long a writer waits for another one. */
void store_sqlite_set_patience(unsigned milliseconds);
