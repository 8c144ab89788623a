/* SPDX-License-Identifier: Apache-2.0 */
/* Two traces, or folders of ranks, and what changed between them, as a document: `sonde diff`. */
#pragma once

#include "analyses/device/trace_diff.h"
#include "report/result.h"

struct trace_diff_report {
	const struct trace_diff *diff;
	const char *before_path, *after_path;
	size_t before_ranks, after_ranks;
	bool hta_compatible;
	size_t limit; /* rows; 0: all in JSON, 20 in the terminal */
	bool is_json; /* has all rows */
	bool all;     /* in the terminal, too: those that did not change */
};

/* Fills in the result, which is zero-initialised. Returns 0 or -ENOMEM. */
int trace_diff_report_make(struct result *result, const struct trace_diff_report *report);
