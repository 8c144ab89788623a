/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that opens sources and reads them on an absolute schedule of CLOCK_MONOTONIC. One that
 * hangs keeps nobody but its own worker: that is left behind at the end, with its memory.
 */
#pragma once

#include <pthread.h>

#include "sources/energy/channel.h"

#define WORKER_CHANNELS 8

struct energy_worker {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a channel's stage, has_ended */
	bool has_ended;         /* under the lock */
	atomic_uint should_end; /* the thread waits on it */
	atomic_uint references;
	uint64_t used_ns, watched_ns; /* CPU time at the last look at it, and when that was */
	double stretch; /* ticks are so many times longer, so that reading costs what it may */
	unsigned channel_count;
	struct energy_channel channels[WORKER_CHANNELS];
};

/*
 * Starts the thread. `tick_ns`: sources are read so often, whatever that costs; 0: as each says,
 * and less often where that would cost too much. Returns 0 or a negative errno.
 */
int energy_worker_start(struct energy_worker **ret_worker,
	const struct energy_source *const *sources, unsigned count,
	const struct energy_place *place, uint64_t tick_ns);
/* Waits until the source is open, or absent, at most until `deadline_ns`. */
enum channel_stage energy_worker_wait(
	struct energy_worker *worker, const struct energy_channel *channel, uint64_t deadline_ns);
/*
 * Ends the thread, or leaves it behind where a source does not return until `deadline_ns`. True
 * when it has ended: then what it wrote may be read. Events stay.
 */
bool energy_worker_stop(struct energy_worker *worker, uint64_t deadline_ns);
struct energy_worker *energy_worker_free(struct energy_worker *worker);
