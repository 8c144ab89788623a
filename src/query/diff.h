/* SPDX-License-Identifier: Apache-2.0 */
/* Two recordings or traces, and what changed between them. */
#pragma once

#include "analyses/cpu/diff.h"
#include "analyses/program/row_diff.h"
#include "analyses/program/tree_diff.h"
#include "load/capture.h"
#include "report/render.h"
#include "report/rows.h"

struct query_diff_options {
	struct selection selection;
	struct shown_options shown;
	const char *by;                       /* "function", "module", "work"; NULL: functions */
	const char *sort;                     /* "self", "total" */
	uint64_t limit;                       /* rows of each table; 0: as suits */
	bool per_second, all, hta_compatible; /* see report/diff/diff.h */
};

/* One of the two runs. */
struct query_diff_side {
	const char *path;
	bool is_trace;
	struct model *model;
	struct selected selected; /* of a recording */
	struct trace_report rows;
};

/* Both sides, and what changed. Zero-initialise. */
struct query_diff {
	struct query_diff_side sides[2];
	bool is_simulated; /* one side, of what the other side is */
	bool has_samples;  /* and `samples` is there */
	struct diff samples;
	struct row_diff rows;
	bool has_tree; /* and `tree` is there */
	struct tree_diff tree;
};

/*
 * Says what the paths are, and whether the options fit them: before anything is loaded. Returns 0,
 * or -EINVAL with a sentence.
 */
int query_diff_check(struct query_diff *diff, const char *before, const char *after,
	const struct query_diff_options *options, struct errmsg *err);
/* Loads both and compares them. Returns 0 or a negative errno with a sentence. */
int query_diff_make(
	struct query_diff *diff, const struct query_diff_options *options, struct errmsg *err);
/* Appends the comparison. `terminal` as in query_report(). Returns 0 or -ENOMEM. */
int query_diff_write(const struct query_diff *diff, const struct query_diff_options *options,
	enum report_form form, const struct terminal *terminal, struct strbuf *out);
void query_diff_done(struct query_diff *diff);
#define _cleanup_query_diff_ _cleanup_(query_diff_done)
