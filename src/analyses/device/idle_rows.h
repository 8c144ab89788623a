/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle time of devices by cause, and by who is to blame: the line that the launching thread was in,
 * where it has samples, and the innermost row of that thread (an operator, a call …), where it has
 * one. Each moment counts once, whatever streams do.
 */
#pragma once

#include "analyses/device/idle.h"
#include "base/map.h"

struct idle_row {
	uint32_t device; /* index in view.devices; MODEL_NONE: of several views together */
	enum device_idle_cause cause;
	uint32_t frame;   /* of the recording (analyses/cpu/charge.h); MODEL_NONE: not known */
	const char *name; /* of the thread's row; NULL: there is none, or it is not the host's */
	enum trace_category category;
	const char *target; /* what was waited for: "stream 7"; NULL: not known, or nothing */
	int64_t time_ns;
	uint64_t gaps;     /* that it has a part of */
	uint64_t samples;  /* that the time rests on, each counted once */
	uint64_t last_gap; /* number of the one that was seen last: of the work that ended it */
};

/* A Python function of the user's own that the launching thread was in, the innermost of these. */
struct idle_python {
	const char *name; /* the trace's: "train.py(12): main" */
	bool is_blocked;  /* in calls that block */
	int64_t time_ns;
};

struct idle_rows {
	ARRAY_OF(struct idle_row) rows;       /* most time first */
	ARRAY_OF(struct idle_python) pythons; /* likewise */
	int64_t time_ns;                      /* of all rows */
	int64_t host_ns;                      /* of the host's causes, and of blocking calls */
	int64_t loading_ns; /* of these, but for blocking calls: in a row that loads data, or for
			       disks */
	uint64_t gaps;      /* of all rows together */
	uint64_t works;     /* of the views so far */
	bool by_device;
	/* Until they are sorted. */
	struct intern names, keys, python_keys; /* of rows; names and targets, too */
	struct map_u64 samples;                 /* of rows: seen */
};

/* Is the time the host's: before the launch, or in a call that blocks? */
static inline bool idle_row_is_host(const struct idle_row *row)
{
	return row->cause <= DEVICE_IDLE_BLOCKED;
}

/* "operator", "call", "annotation", "python"; "" without a name. */
const char *idle_row_kind(const struct idle_row *row);

/*
 * Adds those of one view: of the gaps of its devices in `idle`. Names are the traces'. Set
 * by_device before the first. Returns 0 or -ENOMEM.
 */
int idle_rows_add(
	struct idle_rows *rows, const struct trace_view *view, const struct device_idle *idle);
/* After the last one: sorts. */
void idle_rows_finish(struct idle_rows *rows);
void idle_rows_done(struct idle_rows *rows);
#define _cleanup_idle_rows_ _cleanup_(idle_rows_done)
