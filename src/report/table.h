/* SPDX-License-Identifier: Apache-2.0 */
/* Tables in a terminal: columns as wide as their cells, names shortened where the whole is too
 * wide. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"
#include "base/strbuf.h"

/* How to write to a terminal, or to a file or pipe in its place. */
struct terminal {
	size_t width; /* columns */
	bool colour;
	bool is_whole; /* no terminal, of no width: tables and titles are not shortened */
};

/* NULL-ended. "auto": a terminal, and neither $NO_COLOR nor TERM=dumb. */
extern const char *const terminal_colours[];
/* One of them, for all that follows. */
extern const char *terminal_colour;

/* Width: the terminal's, else $COLUMNS, else 100 for text, and tables are whole. */
struct terminal terminal_of(FILE *file);

/* Escape sequences, "" without colour. */
const char *terminal_bold(const struct terminal *terminal);
const char *terminal_dim(const struct terminal *terminal);
const char *terminal_plain(const struct terminal *terminal);

struct table_column {
	const char *title;
	bool right; /* aligned */
	bool dim;
	bool is_text;      /* no function names: shortened in the middle alone */
	bool is_path;      /* a file, with its line perhaps: shortened at its beginning */
	bool is_source;    /* shortened at its end */
	size_t shrinks_to; /* names: shortened down to this many columns when the table is too wide;
			      0: never */
	bool yields;       /* left out where names would have too little room */
	size_t largest;    /* names: never wider than this, unless there is room; 0: no limit */
};

/* Cells in reading order. Zero-initialise but for the first three. */
struct table {
	const struct table_column *columns;
	size_t column_count;
	size_t indent;
	struct strbuf text;     /* cells, each ended by NUL */
	ARRAY_OF(size_t) cells; /* offsets in text */
};

/* Adds a cell. Control characters in it become visible escapes. */
void table_cell(struct table *table, const char *text);
/* Appends the table, header first; nothing when it has no cells. Returns 0 or -ENOMEM. */
int table_print(struct table *table, const struct terminal *terminal, struct strbuf *out);
void table_done(struct table *table);
#define _cleanup_table_ _cleanup_(table_done)
