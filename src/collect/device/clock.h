/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device's clock from pairs of it and CLOCK_MONOTONIC: times are interpolated between the two
 * pairs around them. Where the clock jumped the pairs begin anew.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

#define DEVICE_CLOCK_PAIRS 640
/* Times beyond this, in any clock, are no honest process's: they could not be counted with. */
#define DEVICE_MAX_NS (100ULL * 365 * 86400 * NS_PER_S)

struct clock_pair {
	uint64_t host_ns, device;
	uint32_t width_ns; /* the error is at most half of it */
};

struct paired_clock {
	struct clock_pair pairs[DEVICE_CLOCK_PAIRS]; /* the newest of them, in a ring */
	uint64_t count;                              /* ever taken */
	uint64_t first, first_before;                /* since the last jump, and the one before */
	uint64_t jumps;
};

/* An interval in the device's clock, and what is known of when it was. */
struct device_interval {
	uint64_t start, end;
	uint64_t not_before_ns; /* CLOCK_MONOTONIC; 0: not known */
	uint64_t pairs;         /* the clock's count of pairs when it came */
};

struct host_interval {
	uint64_t start_ns, end_ns, error_ns;
};

/* Takes pairs in the order of time; others are left out. True when the clock jumped. */
bool paired_clock_add(struct paired_clock *clock, const struct clock_pair *pair);
/* False without any pair. */
bool paired_clock_convert(const struct paired_clock *clock, const struct device_interval *device,
	struct host_interval *ret_host);
