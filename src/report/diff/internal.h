/* SPDX-License-Identifier: Apache-2.0 */
/* The document's two parts: the members "samples" and "work". */
#pragma once

#include "report/diff/diff.h"

/* A table of which only the first rows that fit are filled in. */
struct diff_rows {
	uint32_t table;
	size_t fitting;
	size_t others; /* that do not fit */
};

/* Counts a row of the open table. Is it to be filled in? */
bool diff_takes_row(
	struct diff_rows *rows, struct result *result, const struct diff_report *report, bool fits);
/* What changed, after "CPU time: " and the like: per second, or in all. */
void diff_add_time_change(struct strbuf *out, bool per_second, double ns);

extern const struct report_shape diff_samples_shape, diff_work_shape, diff_tree_shape;

struct diff_rows diff_add_samples(struct result *result, const struct diff_report *report);
/* What a side is, in a sentence. */
void diff_say_samples_of(struct strbuf *out, const struct diff *diff, const struct diff_side *side);
void diff_show_samples(
	struct result *result, const struct diff_report *report, const struct diff_rows *rows);

struct diff_rows diff_add_work(struct result *result, const struct diff_report *report);
void diff_show_work(
	struct result *result, const struct diff_report *report, const struct diff_rows *rows);

#define DIFF_TREE_SHOWN 10 /* operators, unless there is a limit */

struct diff_tree {
	uint32_t table;
	size_t changed; /* operators */
};

struct diff_tree diff_add_tree(struct result *result, const struct diff_report *report);
void diff_show_tree(
	struct result *result, const struct diff_report *report, const struct diff_tree *shown);
