/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTA's compare_traces(): rows of the first rank by name alone, of the profiler step with the
 * smallest number. Rows of threads begin in it, device work is launched by those.
 */
#pragma once

#include "analyses/program/row_diff.h"

/*
 * Of views with HTA's rows, before and after; for row_diff_done(). Returns 0, -ENODATA when a side
 * has no profiler step, or -ENOMEM.
 */
int hta_diff_init(struct row_diff *diff, const struct trace_view *const sides[2]);

/* Of the count: "added", "deleted", "increased", "decreased", "unchanged". */
const char *hta_diff_change_name(const struct row_diff_row *row);
