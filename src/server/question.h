/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question about a capture, as text for the process that answers it: also the key that its answer
 * is kept by. It is made of words that end in NUL: what, form, path, then keys and values of
 * query/options.h.
 */
#pragma once

#include <stdint.h>

#include "base/errmsg.h"
#include "base/strbuf.h"

enum question_what {
	QUESTION_SECTIONS,
	QUESTION_REPORT,
	QUESTION_CALL_TREE,
	QUESTION_CALL_TREE_DIFF,
	QUESTION_DIFF,
	QUESTION_EXPORT,
	QUESTION_TRACKS, /* of the timeline: these and the next */
	QUESTION_TILE,   /* with track, from, to, columns */
	QUESTION_NAMES,  /* with names: numbers with commas */
	QUESTION_SLICE,  /* with track, lane, at */
	QUESTION_WHAT_MAX,
};

#define QUESTION_BYTES_MAX (32 << 10)

struct question {
	enum question_what what;
	int form;         /* of QUESTION_REPORT enum report_form, of QUESTION_EXPORT the exporter */
	const char *path; /* of the other capture of a diff; "" */
};

/* Begins the text; question_add() goes on with it. */
void question_write(struct strbuf *text, const struct question *question);
void question_add(struct strbuf *text, const char *key, const char *value);
/*
 * Reads the head of the text and moves *at behind it. Then question_next() has the keys and values,
 * false at the end. Returns 0, or -EINVAL where it is not one.
 */
int question_read(const char **at, const char *end, struct question *ret_question);
int question_next(const char **at, const char *end, const char **ret_key, const char **ret_value);
