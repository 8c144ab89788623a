/* SPDX-License-Identifier: Apache-2.0 */
/* From the clocks of a trace to CLOCK_MONOTONIC, by the clock snapshots it carries. */
#pragma once

#include "base/array.h"
#include "capture/protobuf.h"

struct clock {
	uint32_t id;
	bool incremental;   /* readings count from the one before */
	uint64_t unit_ns;   /* nanoseconds of one unit */
	uint64_t last;      /* latest reading of an incremental clock, in units */
	uint64_t offset_ns; /* to CLOCK_MONOTONIC, modulo 2^64 */
};

/* The trace's clocks, or those of one packet sequence. */
struct clocks {
	ARRAY_OF(struct clock) list;
};

/* Takes in a ClockSnapshot message. Returns 0, -EBADMSG or -ENOMEM. */
int clocks_take_snapshot(struct clocks *trace, struct clocks *sequence, struct pb_bytes message);
/*
 * CLOCK_MONOTONIC nanoseconds of a reading. Without a snapshot that names the clock, the reading
 * itself. Moves an incremental clock on.
 */
uint64_t clocks_to_monotonic(
	struct clocks *trace, struct clocks *sequence, uint32_t clock_id, uint64_t reading);
void clocks_done(struct clocks *clocks);
