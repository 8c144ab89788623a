/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/device/clock.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/macros.h"

/* Clocks of one machine drift apart no faster. */
#define DRIFT_PPM 500
#define JUMP_NS   50000
/* Work is reported after it ended: later than its next pair it cannot have been. */
#define LATE_NS NS_PER_MS

static const struct clock_pair *pair_at(const struct paired_clock *clock, uint64_t number)
{
	return &clock->pairs[number % DEVICE_CLOCK_PAIRS];
}

static int64_t offset_of(const struct clock_pair *pair)
{
	return (int64_t)(pair->host_ns - pair->device);
}

static uint64_t drift_ns(uint64_t apart_ns)
{
	return apart_ns / 1000000 * DRIFT_PPM;
}

static bool has_jumped(const struct clock_pair *from, const struct clock_pair *to)
{
	uint64_t moved = (uint64_t)llabs(offset_of(to) - offset_of(from));

	return moved >
	       JUMP_NS + from->width_ns + to->width_ns + drift_ns(to->host_ns - from->host_ns);
}

bool paired_clock_add(struct paired_clock *clock, const struct clock_pair *pair)
{
	const struct clock_pair *newest;
	bool jumped;

	if (!clock->count) {
		clock->pairs[clock->count++] = *pair;
		return false;
	}
	newest = pair_at(clock, clock->count - 1);
	if (pair->host_ns < newest->host_ns)
		return false;
	jumped = has_jumped(newest, pair);
	if (jumped) {
		clock->first_before = clock->first;
		clock->first = clock->count;
		clock->jumps++;
	}
	clock->pairs[clock->count++ % DEVICE_CLOCK_PAIRS] = *pair;
	return jumped;
}

/* By one pair: the further away, the less is known. */
static uint64_t by_pair(const struct clock_pair *pair, uint64_t time, uint64_t *ret_error_ns)
{
	uint64_t apart_ns = time > pair->device ? time - pair->device : pair->device - time;

	*ret_error_ns = pair->width_ns / 2 + drift_ns(apart_ns);
	return time + (uint64_t)offset_of(pair);
}

static uint64_t between(const struct clock_pair *before, const struct clock_pair *after,
	uint64_t time, uint64_t *ret_error_ns)
{
	double share = (double)(time - before->device) / (double)(after->device - before->device);
	double moved = (double)(offset_of(after) - offset_of(before)) * share;

	*ret_error_ns = MAX(before->width_ns, after->width_ns) / 2;
	return time + (uint64_t)(offset_of(before) + (int64_t)moved);
}

/* By the pairs with these numbers, the second not included. */
static uint64_t convert(const struct paired_clock *clock, uint64_t oldest, uint64_t end,
	uint64_t time, uint64_t *ret_error_ns)
{
	for (uint64_t i = end - 1;; i--) {
		const struct clock_pair *pair = pair_at(clock, i);

		if (i > oldest && time < pair->device)
			continue;
		/* The oldest stands for all before it. */
		if (i == end - 1 || time < pair->device ||
			pair_at(clock, i + 1)->device <= pair->device)
			return by_pair(pair, time, ret_error_ns);
		return between(pair, pair_at(clock, i + 1), time, ret_error_ns);
	}
}

static bool convert_interval(const struct paired_clock *clock, uint64_t oldest, uint64_t end,
	const struct device_interval *device, struct host_interval *ret_host)
{
	uint64_t error_ns;

	if (clock->count > DEVICE_CLOCK_PAIRS)
		oldest = MAX(oldest, clock->count - DEVICE_CLOCK_PAIRS);
	if (oldest >= end)
		return false;
	ret_host->start_ns = convert(clock, oldest, end, device->start, &ret_host->error_ns);
	ret_host->end_ns = convert(clock, oldest, end, device->end, &error_ns);
	ret_host->error_ns = MAX(ret_host->error_ns, error_ns);
	ret_host->end_ns = MAX(ret_host->end_ns, ret_host->start_ns);
	return true;
}

/* Could it have been then? */
static bool is_plausible(const struct paired_clock *clock, const struct device_interval *device,
	const struct host_interval *host)
{
	return host->end_ns <= pair_at(clock, clock->count - 1)->host_ns + LATE_NS &&
	       host->start_ns + host->error_ns >= device->not_before_ns;
}

/* What came before the jump was seen is taken for older than it, where that can be. */
bool paired_clock_convert(const struct paired_clock *clock, const struct device_interval *device,
	struct host_interval *ret_host)
{
	bool is_older = clock->jumps && device->pairs <= clock->first;
	struct host_interval before;

	if (!convert_interval(clock, clock->first, clock->count, device, ret_host))
		return false;
	if (!clock->jumps || (!is_older && is_plausible(clock, device, ret_host)))
		return true;
	if (convert_interval(clock, clock->first_before, clock->first, device, &before) &&
		is_plausible(clock, device, &before))
		*ret_host = before;
	return true;
}
