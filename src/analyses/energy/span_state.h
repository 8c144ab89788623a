/* SPDX-License-Identifier: Apache-2.0 */
/* Temperature and clock of rails while spans of time lasted. */
#pragma once

#include <math.h>
#include <stddef.h>

#include "model/model.h"

/* Rails are read once a second: what was read so shortly before or after a span is of it, too. */
#define SPAN_STATE_NEAR_NS (1500 * NS_PER_MS)

struct span_state {
	/* Means over the spans' time, of all rails that have any. NaN: not known. */
	double mean_c, highest_c;
	double mean_mhz, lowest_mhz, highest_mhz;
	/* Why not: "not_read" (no rail gives it), "not_read_meanwhile"; NULL: it is known. */
	const char *temperature_reason, *clock_reason;
};

#define SPAN_STATE_UNKNOWN(reason)                                                                 \
	((struct span_state){NAN, NAN, NAN, NAN, NAN, (reason), (reason)})
/* Begin with span_state_begin(), add each rail in each span, and end. */
struct span_state_sums {
	double temperature, temperature_ns, highest_c;
	double clock, clock_ns, lowest_mhz, highest_mhz;
	bool has_temperature, has_clock; /* of any time */
};

void span_state_begin(struct span_state_sums *sums);
/* What the rail of this index was in [start_ns, end_ns]. */
void span_state_add(struct span_state_sums *sums, const struct model *model, uint32_t domain,
	uint64_t start_ns, uint64_t end_ns);
struct span_state span_state_end(const struct span_state_sums *sums);
