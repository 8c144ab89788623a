/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs, and what changed between them, as a document of its own: `sonde diff`. */
#pragma once

#include "analyses/cpu/diff.h"
#include "analyses/program/row_diff.h"
#include "analyses/program/tree_diff.h"
#include "report/result.h"

struct diff_report {
	const char *paths[2];       /* before, after */
	size_t ranks[2];            /* of each */
	const struct diff *samples; /* NULL: a side is a trace, or rows alone are compared */
	const struct row_diff *rows;
	const struct tree_diff *tree; /* NULL: by another tool's definitions, or per second */
	bool per_second;
	bool hta_compatible;
	size_t limit; /* rows of each table; 0: all in JSON, 20 in the terminal */
	bool is_json; /* has all rows */
	bool all;     /* in the terminal, too: those that did not change significantly */
};

/* Fills in the result, which is zero-initialised. Returns 0 or -ENOMEM. */
int diff_report_make(struct result *result, const struct diff_report *report);
/* The JSON Schema of the document. Likewise. */
int diff_report_schema(struct strbuf *out);
