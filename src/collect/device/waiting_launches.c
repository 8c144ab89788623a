/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/device/waiting_launches.h"

#include <stdlib.h>

/* More than a process launches in the second or two that its work is late. */
#define MAX_LAUNCHES (1U << 19)

void waiting_launches_done(struct waiting_launches *launches)
{
	array_done(&launches->items);
	map_u64_done(&launches->map);
}

bool waiting_launches_is_full(const struct waiting_launches *launches)
{
	return launches->items.count - launches->head >= MAX_LAUNCHES;
}

/* What is over at the front goes, when it is most of all. */
static void compact(struct waiting_launches *launches)
{
	size_t left = launches->items.count - launches->head;

	if (launches->head < 1024 || launches->head < left)
		return;
	memmove(launches->items.items, launches->items.items + launches->head,
		left * sizeof(*launches->items.items));
	launches->numbered += launches->head;
	launches->items.count = left;
	launches->head = 0;
}

static void skip_over(struct waiting_launches *launches)
{
	while (launches->head < launches->items.count &&
		launches->items.items[launches->head].is_over)
		launches->head++;
}

static void end(struct waiting_launches *launches, struct waiting_launch *waiting)
{
	uint64_t number, own = launches->numbered + (uint64_t)(waiting - launches->items.items);

	waiting->is_over = true;
	/* A later launch may have the same correlation, in a process that lies. */
	if (map_u64_get(&launches->map, waiting->launch.correlation, &number) && number == own)
		map_u64_remove(&launches->map, waiting->launch.correlation);
	skip_over(launches);
}

int waiting_launches_add(
	struct waiting_launches *launches, const struct wire_device_launch *launch, bool stays)
{
	int result;

	compact(launches);
	result = array_append(
		&launches->items, (struct waiting_launch){.launch = *launch, .stays = stays});
	if (result < 0)
		return result;
	return map_u64_set(&launches->map, launch->correlation,
		launches->numbered + launches->items.count - 1);
}

bool waiting_launches_take(struct waiting_launches *launches, uint64_t correlation,
	struct wire_device_launch *ret_launch)
{
	struct waiting_launch *waiting;
	uint64_t number;

	if (!map_u64_get(&launches->map, correlation, &number))
		return false;
	waiting = &launches->items.items[number - launches->numbered];
	*ret_launch = waiting->launch;
	if (!waiting->stays)
		end(launches, waiting);
	return true;
}

bool waiting_launches_oldest(
	struct waiting_launches *launches, uint64_t exit_ns, struct wire_device_launch *ret_launch)
{
	while (launches->head < launches->items.count) {
		struct waiting_launch *oldest = &launches->items.items[launches->head];
		bool was_written = oldest->stays;

		if (oldest->launch.exit_ns >= exit_ns)
			return false;
		*ret_launch = oldest->launch;
		end(launches, oldest);
		if (!was_written)
			return true;
	}
	return false;
}
