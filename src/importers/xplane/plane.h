/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plane of an XSpace (XLA's xplane.proto): what its events and their statistics are called. Both
 * are given by number in events, and in tables of the plane that may stand behind them.
 */
#pragma once

#include "capture/protobuf.h"
#include "importers/rows.h"

/* The statistics that rows have members for. */
enum xplane_stat {
	XPLANE_CORRELATION,
	XPLANE_KERNEL,  /* "regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:256,1,1" */
	XPLANE_COPY,    /* "kind_src:pinned kind_dst:device size:400 dest:0 async:1" */
	XPLANE_STEP,    /* the number of a StepTraceAnnotation */
	XPLANE_PROCESS, /* of a plane */
	XPLANE_DEVICE,  /* of a plane: what the device is called */
	XPLANE_START,   /* of a plane: when profiling began, since 1970 */
	XPLANE_STAT_MAX,
};

struct xplane_value {
	bool is_there, is_text, is_double;
	int64_t number;
	double real;
	struct pb_bytes text;
};

struct xplane_plane {
	struct pb_bytes message;
	int64_t id;
	uint32_t name;           /* string */
	struct map_u64 events;   /* metadata id → string */
	struct map_u64 stats;    /* metadata id → string */
	struct map_u64 ref_text; /* metadata id → place in refs: texts that values refer to */
	ARRAY_OF(struct pb_bytes) refs;
	uint64_t ids[XPLANE_STAT_MAX]; /* of statistics; UINT64_MAX: the plane has none of it */
	struct xplane_value values[XPLANE_STAT_MAX]; /* of the plane itself */
};

/* Reads all but the lines. Returns 0, -EBADMSG, or another negative errno. */
int xplane_plane_init(
	struct xplane_plane *plane, struct import_rows *rows, struct pb_bytes message);
void xplane_plane_done(struct xplane_plane *plane);

/* One XStat: which it is, and its value. XPLANE_STAT_MAX: another one. Returns 0 or -EBADMSG. */
int xplane_read_stat(const struct xplane_plane *plane, struct pb_bytes message,
	enum xplane_stat *ret_stat, uint64_t *ret_id, struct xplane_value *ret_value);
