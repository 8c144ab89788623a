/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the readings of one rail to intervals with their energy. A counter's intervals lie between
 * moments at which it was seen to step, so that one that is updated every 100 ms gives no energy to
 * the wrong interval; power is integrated between two readings. What cannot be energy is a gap: the
 * time of it is in an interval without a figure.
 */
#pragma once

#include "sources/energy/source.h"

struct energy_meter {
	const struct energy_rail *rail;
	bool is_fast;     /* a counter that steps between any two readings */
	uint64_t hold_ns; /* power is not integrated over a longer time */
	bool has_last, has_start;
	bool stepped; /* the reading before was another than the one before it */
	uint64_t last_ns, last_value;
	uint64_t start_ns;        /* of the interval that is open; before there is one, of the first
				     reading */
	uint64_t step_ns;         /* when power changed the last time */
	enum wire_energy_gap gap; /* why it has no energy */
	uint64_t sleep_ns;        /* how long the machine has slept since it was started */
	uint64_t distances_ns[32]; /* between steps, the last ones */
	unsigned distance_count;
};

/* `tick_ns`: between two readings. */
void energy_meter_init(
	struct energy_meter *meter, const struct energy_rail *rail, bool is_fast, uint64_t tick_ns);
/* It is read so often from now on. */
void energy_meter_tick(struct energy_meter *meter, uint64_t tick_ns);
/*
 * The next reading, which took `took_ns`, and how long the machine has slept so far
 * (CLOCK_BOOTTIME less CLOCK_MONOTONIC). True: an interval is complete; its domain and busy time
 * are not filled in. One that is earlier than the reading before is left out.
 */
bool energy_meter_add(struct energy_meter *meter, const struct energy_reading *reading,
	uint64_t took_ns, uint64_t sleep_ns, struct wire_energy_interval *ret_interval);
/* Between two updates of the rail, the median of those seen; 0: too few were seen. */
uint64_t energy_meter_period_ns(const struct energy_meter *meter, unsigned steps_wanted);
