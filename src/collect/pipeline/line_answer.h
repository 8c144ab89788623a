/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the child of line_process.h answers, and reading it. The child has read what its files'
 * owners wrote, with a library that is not ours: its answers are not believed. A part of
 * line_process.c.
 */
#pragma once

#include "base/strbuf.h"
#include "collect/pipeline/line_process.h"

/* The longest names of C++ have some ten kilobytes. */
#define LINE_TEXT_MAX_BYTES ((uint32_t)64 << 10)

enum line_answer_kind {
	LINE_ANSWER_FILE,   /* `index`: of the request's files, which is looked into from now on */
	LINE_ANSWER_LINES,  /* `index`: of the addresses; `count` struct line_answer_line, texts */
	LINE_ANSWER_FAILED, /* the file cannot be used; its text: why */
};

struct line_answer {
	uint32_t kind, index, count, length; /* of what follows */
};

struct line_answer_line {
	uint32_t line, function_length, file_length; /* with the NUL; 0: NULL */
};

/* What the answers held so far. Zero-initialise the rest. */
struct line_reading {
	const struct line_request *request;
	struct line_account *account;
	struct strbuf input;  /* of the child at hand: clear it before another one */
	size_t file;          /* of the request, the one that is looked into */
	size_t answered;      /* of its addresses: they have lines, or were left out */
	uint64_t file_end_ns; /* when it has taken too long */
	bool has_failed;      /* this file, by the child's answer */
};

void line_reading_begin_file(struct line_reading *reading, size_t file);
/*
 * Reads some bytes of the child's, and calls request->found. False for what no sound child sends,
 * and when memory runs out.
 */
bool line_reading_add(struct line_reading *reading, const char *bytes, size_t length);
/* All files were answered for: a child that ends before that has not ended well. */
bool line_reading_is_complete(const struct line_reading *reading);
/* Accounts for the addresses of the file at hand that have no answer, and says why. */
void line_reading_leave_out(struct line_reading *reading, const char *why);
/* The same for the file at hand and all behind it: the time is over. */
void line_reading_leave_out_rest(struct line_reading *reading);
void line_reading_done(struct line_reading *reading);
