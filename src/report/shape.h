/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a section of the report is made of: columns with a name, a unit and a kind. The terminal,
 * JSON, its schema and CSV are all made from them, so that a figure is named in one place.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/* How a value reads: in the terminal with its unit, in JSON as the plain number of the key's. */
enum report_kind {
	REPORT_TEXT,
	REPORT_INTEGER, /* a number that names something: a pid, a line. "1234" */
	REPORT_COUNT,   /* "1,234" */
	REPORT_NS,      /* "1.23 ms"; may be negative */
	REPORT_BYTES,   /* "1.2 MiB" */
	REPORT_SHARE,   /* 0 to 1: "12.34 %" */
	REPORT_JOULES,
	REPORT_WATTS,
	REPORT_NUMBER, /* with the column's decimals, else six digits */
	REPORT_FLAG,   /* "yes"; "" when not */
	/* Made of rows; `shape` has their columns. */
	REPORT_ROWS,   /* an array of objects */
	REPORT_OBJECT, /* of one row */
	REPORT_MAP,    /* an object: the first column is the key, the second its value */
	REPORT_LIST,   /* an array of values, or of arrays where there are several columns */
	REPORT_KIND_MAX,
};

/* "text", "ns" …: for the page, and for runs that are stored. */
const char *report_kind_name(enum report_kind kind);

/* When the terminal leaves a column out. */
enum report_hide {
	REPORT_HIDE_NEVER,
	REPORT_HIDE_SAME,    /* all rows have the same: there is one process, one device … */
	REPORT_HIDE_EMPTY,   /* no row has any: unknown, 0, or not */
	REPORT_HIDE_UNKNOWN, /* no row has any: unknown */
};

/* What one row for all ranks has of the rows of each: join.h. */
enum report_join {
	REPORT_JOIN_SAME, /* their value where all have the same, else nothing */
	REPORT_JOIN_KEY,  /* rows that have the same are one */
	REPORT_JOIN_SUM,
	REPORT_JOIN_MEAN, /* of shares that of the sums: it fits the figures beside it */
	REPORT_JOIN_LEAST,
	REPORT_JOIN_MOST,
	REPORT_JOIN_OF_MOST,         /* that of the rank with most of the column with is_lead */
	REPORT_JOIN_RANK,            /* it is the rank: nothing */
	REPORT_JOIN_RANKS,           /* how many ranks: a count */
	REPORT_JOIN_NUMBER_OF_RANKS, /* the same as text: "8 ranks" */
	REPORT_JOIN_LEAST_RANK, /* "61.5 us (3)": the least of the lead before it, and its rank */
	REPORT_JOIN_MOST_RANK,
};

#define REPORT_ALL_VIEWS UINT_MAX /* of struct report_column */

struct report_shape;

struct report_column {
	const char *key;   /* in JSON and CSV, with its unit: "total_ns"; NULL: not there */
	const char *title; /* in the terminal; NULL: not there */
	enum report_kind kind;
	const struct report_shape *shape; /* of what is made of rows */
	const char *help;                 /* what it means, for the schema; NULL: the key says it */
	const char *total; /* of rows that --limit cuts: the member that counts all: "rows_total" */
	/* In the terminal. */
	const char *unknown; /* what stands for a value that is not known; NULL: nothing */
	unsigned views;      /* bits: the tables of these rows that have it; 0: the first */
	enum report_hide hide;
	uint8_t decimals; /* of REPORT_NUMBER, where not six digits; of REPORT_SHARE, where not 2 */
	uint8_t digits;   /* of REPORT_NUMBER: significant ones, where not six */
	bool is_change;   /* with a sign: "+1.23 ms" */
	/* Of text: see struct table_column. */
	uint8_t shrinks_to, largest;
	bool yields; /* left out where names would have too little room */
	enum report_join join;
	bool is_lead; /* the figure of which one row for all ranks has the least and most */
	bool is_dim, is_path, is_source, is_name, is_right;
};

struct report_shape {
	const struct report_column *columns;
	size_t count;
};

#define REPORT_SHAPE(of_columns)                                                                   \
	{                                                                                          \
		.columns = (of_columns), .count = ARRAY_SIZE(of_columns)                           \
	}

static inline bool report_kind_has_rows(enum report_kind kind)
{
	return kind >= REPORT_ROWS;
}
