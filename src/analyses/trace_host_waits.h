/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host did while devices waited for it: each moment of a gap before whose end nothing was
 * being launched (TRACE_IDLE_HOST) is charged to the innermost row of the thread that then launched
 * the next work.
 */
#pragma once

#include "analyses/trace_view.h"

struct trace_host_waits_row {
	const char *name; /* of an operator, a call …; NULL: the thread has no row there */
	enum trace_category category;
	int64_t time_ns;
	uint64_t gaps; /* that it has a part of */
};

struct trace_host_waits {
	ARRAY_OF(struct trace_host_waits_row) rows; /* most time first */
	int64_t time_ns;                            /* their sum: the host's part of idle time */
};

/* "operator", "call", "annotation", "python"; "" without a name. */
const char *trace_host_waits_kind(const struct trace_host_waits_row *row);

/* Of all views together; not of HTA's, which gives []. Returns 0 or -ENOMEM. Names are the traces'.
 */
int trace_host_waits_init(
	struct trace_host_waits *waits, const struct trace_view *views, size_t count);
void trace_host_waits_done(struct trace_host_waits *waits);
#define _cleanup_trace_host_waits_ _cleanup_(trace_host_waits_done)
