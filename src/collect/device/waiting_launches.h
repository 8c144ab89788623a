/* SPDX-License-Identifier: Apache-2.0 */
/* The launches of a process whose work has not come, in the order in which they came. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"
#include "wire/device.h"

/* Work may come so much later than its launch, or it runs long: what it misses is joined later. */
#define WAITING_LAUNCH_NS (10 * NS_PER_S)

struct waiting_launch {
	struct wire_device_launch launch;
	bool stays; /* many works have it, and it is written already */
	bool is_over;
};

/* Zero-initialise to start empty. */
struct waiting_launches {
	ARRAY_OF(struct waiting_launch) items;
	size_t head;        /* in items: those before it are over */
	uint64_t numbered;  /* the number of items.items[0] */
	struct map_u64 map; /* correlation → number */
};

void waiting_launches_done(struct waiting_launches *launches);
/* `stays`: it has been reported, and waiting_launches_take() leaves it. Returns 0 or -ENOMEM. */
int waiting_launches_add(
	struct waiting_launches *launches, const struct wire_device_launch *launch, bool stays);
bool waiting_launches_is_full(const struct waiting_launches *launches);
/* That of this correlation; false: it is not here, or not yet. */
bool waiting_launches_take(struct waiting_launches *launches, uint64_t correlation,
	struct wire_device_launch *ret_launch);
/* Takes the oldest that ended before `exit_ns` and has not been reported; false: there is none. */
bool waiting_launches_oldest(
	struct waiting_launches *launches, uint64_t exit_ns, struct wire_device_launch *ret_launch);
