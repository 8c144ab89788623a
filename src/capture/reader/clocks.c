/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/reader/clocks.h"

#include "capture/fields.h"

/* Real traces have about ten; the rest of a hostile one is ignored. */
#define MAX_CLOCKS 128

static struct clock *find_clock(struct clocks *clocks, uint32_t id)
{
	array_foreach (&clocks->list, clock) {
		if (clock->id == id)
			return clock;
	}
	return NULL;
}

static bool belongs_to_sequence(uint32_t clock_id)
{
	return clock_id >= CLOCK_ID_SEQUENCE_FIRST && clock_id <= CLOCK_ID_SEQUENCE_LAST;
}

static int read_clock(struct pb_bytes message, struct clock *ret_clock)
{
	struct clock clock = {.unit_ns = 1};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		switch (field.tag) {
		case PB_VARINT(CLOCK_ENTRY_ID):
			clock.id = (uint32_t)field.value;
			break;
		case PB_VARINT(CLOCK_ENTRY_TIMESTAMP):
			clock.last = field.value;
			break;
		case PB_VARINT(CLOCK_ENTRY_INCREMENTAL):
			clock.incremental = field.value;
			break;
		case PB_VARINT(CLOCK_ENTRY_UNIT_NS):
			clock.unit_ns = field.value ? field.value : 1;
			break;
		}
	}
	*ret_clock = clock;
	return more;
}

static uint64_t reading_ns(const struct clock *clock)
{
	return clock->last * clock->unit_ns;
}

/*
 * The offset that holds for the whole snapshot: by its CLOCK_MONOTONIC reading; else by a clock
 * that an earlier snapshot tied to CLOCK_MONOTONIC; else BOOTTIME counts as if it were
 * CLOCK_MONOTONIC.
 */
static uint64_t snapshot_monotonic_ns(const struct clocks *snapshot, struct clocks *trace)
{
	uint64_t fallback = 0;

	array_foreach (&snapshot->list, clock) {
		if (clock->id == CLOCK_ID_MONOTONIC)
			return reading_ns(clock);
	}
	array_foreach (&snapshot->list, clock) {
		const struct clock *known = find_clock(trace, clock->id);

		if (known)
			return reading_ns(clock) + known->offset_ns;
		if (fallback == 0 || clock->id == CLOCK_ID_BOOTTIME)
			fallback = reading_ns(clock);
	}
	return fallback;
}

static int store_clock(struct clocks *clocks, const struct clock *clock)
{
	struct clock *known = find_clock(clocks, clock->id);

	if (known) {
		*known = *clock;
		return 0;
	}
	return clocks->list.count < MAX_CLOCKS ? array_append(&clocks->list, *clock) : 0;
}

static int read_snapshot(struct pb_bytes message, struct clocks *ret_snapshot)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		struct clock clock;
		int result;

		if (field.tag != PB_BYTES(SNAPSHOT_CLOCKS))
			continue;
		result = read_clock(field.bytes, &clock);
		if (result == 0)
			result = store_clock(ret_snapshot, &clock);
		if (result < 0)
			return result;
	}
	return more;
}

int clocks_take_snapshot(struct clocks *trace, struct clocks *sequence, struct pb_bytes message)
{
	_cleanup_(clocks_done) struct clocks snapshot = {0};
	uint64_t monotonic_ns;
	int result = read_snapshot(message, &snapshot);

	if (result < 0)
		return result;
	monotonic_ns = snapshot_monotonic_ns(&snapshot, trace);
	array_foreach (&snapshot.list, clock) {
		clock->offset_ns = monotonic_ns - reading_ns(clock);
		result = store_clock(belongs_to_sequence(clock->id) ? sequence : trace, clock);
		if (result < 0)
			return result;
	}
	return 0;
}

uint64_t clocks_to_monotonic(
	struct clocks *trace, struct clocks *sequence, uint32_t clock_id, uint64_t reading)
{
	struct clock *clock =
		find_clock(belongs_to_sequence(clock_id) ? sequence : trace, clock_id);

	if (!clock)
		return reading;
	if (!clock->incremental)
		return reading * clock->unit_ns + clock->offset_ns;
	clock->last += reading;
	return reading_ns(clock) + clock->offset_ns;
}

void clocks_done(struct clocks *clocks)
{
	array_done(&clocks->list);
}
