/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a section says: values in the columns of its shape, and in which order a terminal shows
 * them, with what sentences and advice between them. A section fills it; render.h writes it.
 *
 * Values are given in the order of the columns, row after row. A column that is made of rows is
 * opened, filled and closed in its place:
 *
 *	result_open(result);                    the section's object
 *	result_u64(result, work->total_ns);     "total_ns"
 *	kernels = result_open(result);          "kernels"
 *	…                                       its rows
 *	result_close(result);
 *	result_close(result);
 *	result_heading(result, "Kernels");
 *	result_show(result, kernels, &(struct result_show){.limit = 8, .noun = "kernels"});
 *
 * Texts are copied. Running out of memory is remembered: result_status() says it.
 */
#pragma once

#include "base/array.h"
#include "base/strbuf.h"
#include "report/shape.h"

enum result_state {
	REPORT_UNKNOWN, /* null */
	REPORT_U64,
	REPORT_I64,
	REPORT_DOUBLE,
	REPORT_BOOL,
	REPORT_STRING,
	REPORT_TABLE,
};

struct result_value {
	enum result_state state;
	float whole; /* of a share that result_share() made: what it is of, for join.h; else 0 */
	union {
		uint64_t u64;
		int64_t i64;
		double number;
		bool flag;
		size_t text;    /* offset in texts */
		uint32_t table; /* index in tables */
	};
};

/* An object has one row. */
struct result_table {
	const struct report_column *column; /* whose value it is */
	ARRAY_OF(struct result_value) values;
	size_t left_out; /* rows that were not filled in */
	bool is_apart;   /* no value of the result: it is only shown */
	uint32_t like;   /* then: the table whose rows it shows in another form */
};

/* How the terminal shows a table. */
struct result_show {
	size_t limit;      /* rows; 0: all that were filled in */
	size_t left_out;   /* in addition to the rows that the table leaves out */
	const char *noun;  /* "kernels": what is left out; NULL: not mentioned */
	double rest_share; /* of those; 0: not mentioned */
	unsigned view;     /* which of the column's views, from 0 on */
	size_t indent;
};

enum report_block_kind {
	REPORT_BLOCK_TITLE,
	REPORT_BLOCK_HEADING,
	REPORT_BLOCK_SENTENCE,
	REPORT_BLOCK_ADVICE,
	REPORT_BLOCK_LINES, /* as they are, but for control characters */
	REPORT_BLOCK_TABLE,
	REPORT_BLOCK_BARS,
};

/* How the terminal draws the numbers of a list over time, on one line. */
struct result_bars {
	const char *title, *unit; /* static: "CPU use over time", "CPUs" */
	double scale;             /* a number times this is in that unit */
};

struct result_block {
	enum report_block_kind kind;
	size_t text, indent;
	bool is_account; /* of how it was recorded: a report has it at its end */
	uint32_t table;
	struct result_show show;
	struct result_bars bars;
};

#define REPORT_EVIDENCE_MAX  4
#define REPORT_SAVES_UNKNOWN UINT64_MAX

/* What would help. The sentence is in the terminal's blocks, too. */
struct result_advice {
	const char *id; /* "launch_bound": static */
	size_t sentence;
	uint64_t saves_ns; /* at most; REPORT_SAVES_UNKNOWN: not known */
	const char *docs;  /* the page that says more: "docs/python.md"; static; NULL: none */
	/* The figures that it rests on. Ends at a key that is NULL. */
	struct {
		const char *key; /* "idle_ns": static */
		double value;
	} evidence[REPORT_EVIDENCE_MAX];
};

/* Zero-initialise but for the column. */
struct result {
	const struct report_column *column; /* of the section: its name, kind and shape */
	struct result_value value;
	ARRAY_OF(struct result_table) tables;
	ARRAY_OF(uint32_t) open;
	ARRAY_OF(struct result_block) blocks;
	ARRAY_OF(struct result_advice) advice;
	struct strbuf texts;
	bool is_account; /* of the blocks that come; see result_account() */
	int status;
};

void result_done(struct result *result);
#define _cleanup_result_ _cleanup_(result_done)
/* 0 or -ENOMEM. */
int result_status(const struct result *result);

/* ---- values ---- */

/* The next value is made of rows, which follow. Returns its number, for result_show(). */
uint32_t result_open(struct result *result);
/* A table with the columns of another, which is no value of the result: it is only shown. */
uint32_t result_open_apart(struct result *result, uint32_t like);
void result_close(struct result *result);

/* One of a table of this result. */
void result_value(struct result *result, struct result_value value);
void result_null(struct result *result);
/* NULL and "" are null. */
void result_text(struct result *result, const char *text);
void result_textf(struct result *result, const char *format, ...) _printf_(2, 3);
void result_u64(struct result *result, uint64_t value);
void result_i64(struct result *result, int64_t value);
/* NaN and infinities are null. */
void result_number(struct result *result, double value);
void result_flag(struct result *result, bool value);
/* Null when it is not known. */
void result_known(struct result *result, bool known, uint64_t value);
/* Null when the whole is 0. */
void result_share(struct result *result, double part, double whole);

/* The open table has more rows, which are not filled in. */
void result_leave_out(struct result *result, size_t rows);
/* Rows of a table that was opened. */
size_t result_count(const struct result *result, uint32_t table);

/* ---- what a terminal shows ---- */

/* What comes is about the recording, and in order: a report has it at its end. Or no longer. */
void result_account(struct result *result, bool is_account);

/* Of the report: a line, shortened to the terminal's width. */
void result_title(struct result *result, const char *text);
void result_heading(struct result *result, const char *text);
/* A paragraph, broken at words. */
void result_sentence(struct result *result, size_t indent, const char *text);
void result_sentencef(struct result *result, size_t indent, const char *format, ...) _printf_(3, 4);
/* The same, with the status of `text`. */
void result_say(struct result *result, size_t indent, const struct strbuf *text);
void result_lines(struct result *result, const char *text);
void result_show(struct result *result, uint32_t table, const struct result_show *show);
/* The numbers of a list, as bars. */
void result_draw(struct result *result, uint32_t list, const struct result_bars *bars);
/* Also shown, as a sentence. */
void result_advise(struct result *result, const struct result_advice *advice, const char *sentence);
/* Takes back one of result->advice, and its sentence. */
void result_drop_advice(struct result *result, size_t index);

/* ---- for renderers ---- */

static inline const char *result_string(const struct result *result, size_t text)
{
	return result->texts.data + text;
}
/* Of the same kind, and the same text or number. */
bool result_is_same(
	const struct result *result, const struct result_value *a, const struct result_value *b);

static inline size_t result_rows(const struct result_table *table)
{
	return table->values.count / table->column->shape->count;
}
