/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/meter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* A reading that takes longer has a value of nobody knows when. */
#define LATE_NS NS_PER_S
/* A rail that is never at rest and does not change for so long has stopped. */
#define STOPPED_NS (5 * NS_PER_S)
/* Both clocks are read one after the other. */
#define SLEEP_NS (50 * NS_PER_MS)
/* Steps are seen up to a tick late, and the first one after a short while holds more. */
#define SLACK_NS (20 * NS_PER_MS)

void energy_meter_init(
	struct energy_meter *meter, const struct energy_rail *rail, bool is_fast, uint64_t tick_ns)
{
	*meter = (struct energy_meter){
		.rail = rail,
		.is_fast = is_fast,
	};
	energy_meter_tick(meter, tick_ns);
}

void energy_meter_tick(struct energy_meter *meter, uint64_t tick_ns)
{
	meter->hold_ns = MAX(4 * tick_ns, NS_PER_S);
}

/* From the open interval's start on, there is no energy until a reading to go on from. */
static void begin_gap(struct energy_meter *meter, enum wire_energy_gap gap)
{
	if (meter->has_start && !meter->gap)
		meter->gap = gap;
	meter->stepped = false;
}

/* The open interval ends; the next one begins there. True when there was one. */
static bool end_interval(struct energy_meter *meter, uint64_t end_ns, double energy_nj,
	struct wire_energy_interval *ret_interval)
{
	bool is_one = meter->has_start && end_ns > meter->start_ns;

	if (is_one)
		*ret_interval = (struct wire_energy_interval){
			.start_ns = meter->start_ns,
			.end_ns = end_ns,
			.gap = meter->gap,
			.energy_nj = meter->gap ? 0 : (uint64_t)llround(energy_nj),
		};
	meter->has_start = true;
	meter->start_ns = end_ns;
	meter->gap = WIRE_ENERGY_NO_GAP;
	return is_one;
}

static void learn(struct energy_meter *meter, uint64_t distance_ns)
{
	meter->distances_ns[meter->distance_count++ % ARRAY_SIZE(meter->distances_ns)] =
		distance_ns;
}

/* What the counter added since the last reading, in nanojoules; negative: it is no energy, and why.
 */
static double counter_added_nj(const struct energy_meter *meter, uint64_t value, uint64_t now_ns,
	enum wire_energy_gap *ret_gap)
{
	const struct energy_rail *rail = meter->rail;
	uint64_t since_ns = meter->has_start ? meter->start_ns : meter->last_ns;
	/* 1 W for 1 ns is 1 nJ. */
	double most_nj = rail->implausible_w * (double)(now_ns - since_ns + SLACK_NS);
	double added;

	*ret_gap = WIRE_ENERGY_IMPLAUSIBLE;
	if (value >= meter->last_value) {
		added = (double)(value - meter->last_value);
	} else if (!rail->range || value > rail->range || meter->last_value > rail->range) {
		*ret_gap = WIRE_ENERGY_WENT_BACK;
		return -1;
	} else {
		added = (double)(rail->range - meter->last_value + value);
	}
	/* In this time it may have begun at 0 more than once. */
	if (rail->range && rail->implausible_w * (double)(now_ns - since_ns) >=
				   (double)rail->range * rail->nj_per_unit)
		return -1;
	added *= rail->nj_per_unit;
	return added > most_nj ? -1 : added;
}

static bool add_same_value(
	struct energy_meter *meter, uint64_t now_ns, struct wire_energy_interval *ret_interval)
{
	bool is_long = now_ns - meter->start_ns >= STOPPED_NS;

	meter->stepped = false;
	meter->last_ns = now_ns;
	if (!is_long || meter->gap)
		return false;
	if (meter->rail->may_rest)
		return end_interval(meter, now_ns, 0, ret_interval);
	begin_gap(meter, WIRE_ENERGY_STALLED);
	return false;
}

static bool add_counter(struct energy_meter *meter, uint64_t value, uint64_t now_ns,
	struct wire_energy_interval *ret_interval)
{
	enum wire_energy_gap gap;
	uint64_t step_ns, start_ns = meter->start_ns;
	bool is_known = meter->has_start && !meter->gap, is_one;
	double added_nj;

	if (!meter->has_last) { /* energy is known from the next step on */
		meter->has_last = true;
		meter->last_ns = now_ns;
		meter->last_value = value;
		if (!meter->has_start)
			meter->start_ns = now_ns;
		return false;
	}
	if (value == meter->last_value)
		return add_same_value(meter, now_ns, ret_interval);
	added_nj = counter_added_nj(meter, value, now_ns, &gap);
	if (added_nj < 0 && !meter->gap && meter->has_start)
		begin_gap(meter, gap);
	/* A slow counter stepped at some moment since it was last looked at. */
	step_ns = meter->is_fast || meter->stepped ? now_ns
						   : meter->last_ns + (now_ns - meter->last_ns) / 2;
	meter->stepped = true;
	meter->last_ns = now_ns;
	meter->last_value = value;
	is_one = end_interval(meter, step_ns, added_nj, ret_interval);
	if (is_known && added_nj >= 0)
		learn(meter, step_ns - start_ns);
	return is_one;
}

static bool add_power(struct energy_meter *meter, uint64_t value_uw, uint64_t now_ns,
	struct wire_energy_interval *ret_interval)
{
	/* A microwatt for a nanosecond is a millionth of a nanojoule. */
	double mean_uw = ((double)value_uw + (double)meter->last_value) / 2, energy_nj;

	if ((double)value_uw > meter->rail->implausible_w * 1e6) {
		begin_gap(meter, WIRE_ENERGY_IMPLAUSIBLE);
		meter->has_last = false;
		return false;
	}
	if (meter->has_last && now_ns - meter->last_ns > meter->hold_ns)
		begin_gap(meter, WIRE_ENERGY_STALLED);
	energy_nj = mean_uw * (double)(now_ns - meter->last_ns) / 1e6;
	if (meter->has_last && value_uw != meter->last_value) {
		if (meter->step_ns)
			learn(meter, now_ns - meter->step_ns);
		meter->step_ns = now_ns;
	}
	meter->has_last = true;
	meter->last_ns = now_ns;
	meter->last_value = value_uw;
	return end_interval(meter, now_ns, energy_nj, ret_interval);
}

bool energy_meter_add(struct energy_meter *meter, const struct energy_reading *reading,
	uint64_t took_ns, uint64_t sleep_ns, struct wire_energy_interval *ret_interval)
{
	uint64_t slept_ns = sleep_ns > meter->sleep_ns ? sleep_ns - meter->sleep_ns : 0;
	bool is_first = !meter->has_last && !meter->has_start;

	if (!is_first && reading->time_ns <= MAX(meter->last_ns, meter->start_ns))
		return false;
	if (!is_first && slept_ns > SLEEP_NS) {
		begin_gap(meter, WIRE_ENERGY_SUSPENDED);
		meter->has_last = false;
	}
	meter->sleep_ns = sleep_ns;
	if (reading->error || took_ns > LATE_NS) {
		begin_gap(meter, reading->error ? WIRE_ENERGY_READ_FAILED : WIRE_ENERGY_STALLED);
		meter->has_last = false;
		return false;
	}
	if (meter->rail->kind == ENERGY_COUNTER)
		return add_counter(meter, reading->value, reading->time_ns, ret_interval);
	return add_power(meter, reading->value, reading->time_ns, ret_interval);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t energy_meter_period_ns(const struct energy_meter *meter, unsigned steps_wanted)
{
	uint64_t distances[ARRAY_SIZE(meter->distances_ns)];
	size_t count = MIN((size_t)meter->distance_count, ARRAY_SIZE(distances));

	if (!count || meter->distance_count < steps_wanted)
		return 0;
	memcpy(distances, meter->distances_ns, count * sizeof(*distances));
	qsort(distances, count, sizeof(*distances), compare_u64);
	return distances[count / 2];
}
