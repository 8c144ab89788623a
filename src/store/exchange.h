/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs as JSON lines, to take them from one database to another: a head, then each run, and behind
 * it the rows of its tables. What is written and read again is the same; a run that is there
 * already is passed over.
 */
#pragma once

#include <stdio.h>

#include "base/output_file.h"
#include "store/rows.h"

#define STORE_EXCHANGE_VERSION 1
#define STORE_LINE_MAX         ((size_t)8 << 20) /* bytes; a longer line is refused */

int store_export(struct store *store, const struct run_rows *rows, struct output_file *file,
	struct errmsg *err);

struct store_imported {
	uint64_t runs, known; /* added; there already */
};

/* `name` is for messages. A run is added as a whole or not at all; those before a fault stay. */
int store_import(struct store *store, FILE *file, const char *name,
	struct store_imported *ret_imported, struct errmsg *err);

/* ---- lines ---- */

#define STORE_COLUMNS_MOST 96

/* A line of a stranger. Zero-initialise; may be used again. */
struct store_line {
	enum store_table_id table; /* STORE_TABLE_MAX: the head */
	struct store_value values[STORE_COLUMNS_MOST];
	int64_t version; /* of the head */
	struct strbuf texts;
};

/* Without the line feed. 0, or -EINVAL with a reason, "the column x is not known". */
int store_line_parse(
	struct store_line *line, const char *bytes, size_t length, struct errmsg *reason);
void store_line_done(struct store_line *line);
#define _cleanup_store_line_ _cleanup_(store_line_done)
