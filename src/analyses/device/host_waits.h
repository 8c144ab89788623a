/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host did while devices waited for it: each moment of a gap before whose end nothing was
 * being launched (TRACE_IDLE_HOST), or in which a call blocked (TRACE_IDLE_BLOCKED), is charged to
 * the innermost row of the thread that then launched the next work.
 */
#pragma once

#include "analyses/trace_view.h"
#include "base/map.h"

struct trace_host_waits_row {
	const char *name; /* of an operator, a call …; NULL: the thread has no row there */
	enum trace_category category;
	int64_t time_ns;
	uint64_t gaps;     /* that it has a part of */
	uint64_t last_gap; /* number of the one that was seen last */
};

struct trace_host_waits {
	ARRAY_OF(struct trace_host_waits_row) rows; /* most time first */
	int64_t time_ns;                            /* their sum: the host's part of idle time */
	uint64_t gaps;                              /* of all rows together */
	struct intern names; /* kinds and names → rows, until they are sorted */
};

/* "operator", "call", "annotation", "python"; "" without a name. */
const char *trace_host_waits_kind(const struct trace_host_waits_row *row);

/*
 * Adds those of one view, of whose gaps `idle` tells; HTA's tells of none. Names are the traces'.
 * Returns 0 or -ENOMEM.
 */
struct trace_idle;
int trace_host_waits_add(struct trace_host_waits *waits, const struct trace_view *view,
	const struct trace_idle *idle);
/* After the last one: sorts. */
void trace_host_waits_finish(struct trace_host_waits *waits);
void trace_host_waits_done(struct trace_host_waits *waits);
#define _cleanup_trace_host_waits_ _cleanup_(trace_host_waits_done)
