/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source at work: what it found, what reading it costs, its meters, and a queue of what they say,
 * with one writer, the thread that reads (worker.h), and one reader.
 */
#pragma once

#include <stdatomic.h>

#include "sources/energy/meter.h"
#include "sources/energy/source.h"

#define CHANNEL_QUEUE 1024 /* a power of two */

struct energy_event {
	bool is_state;
	unsigned rail;
	union {
		struct wire_energy_interval interval; /* domain and busy time are not filled in */
		struct wire_energy_state state;       /* domain is not */
	};
};

struct energy_queue {
	_Atomic uint32_t head, tail; /* written by the reader and by the thread */
	struct energy_event events[CHANNEL_QUEUE];
};

enum channel_stage {
	CHANNEL_OPENING,
	CHANNEL_READS,
	CHANNEL_ABSENT, /* see found.absence */
};

struct energy_channel {
	const struct energy_source *source;
	struct energy_place place;
	uint64_t wanted_tick_ns; /* 0: as the source says */
	_Atomic unsigned stage;  /* enum channel_stage */
	_Atomic bool is_done;    /* it is not wanted any longer */
	/* Written by the thread before the stage is READS or ABSENT, and read-only from then on. */
	struct energy_found found;
	uint64_t tick_ns, cost_ns; /* cost: of one reading of all rails */
	struct energy_meter meters[ENERGY_MAX_RAILS];
	void *state;
	uint64_t due_ns, look_ns; /* the thread's own */
	/* Written by the thread while it reads. */
	_Atomic uint64_t period_ns[ENERGY_MAX_RAILS];
	_Atomic int error[ENERGY_MAX_RAILS]; /* the last one; 0: there was none */
	struct energy_queue queue;
};

/* The next event, NULL: there is none. It stays until energy_channel_pop(). */
const struct energy_event *energy_channel_peek(struct energy_channel *channel);
void energy_channel_pop(struct energy_channel *channel);

/* The parts of the thread. */

/* Opens the source and probes it. */
void energy_channel_open(struct energy_channel *channel);
/* Reads some times: what that costs, which counters step at once, and how often to read then. */
void energy_channel_probe(struct energy_channel *channel);
void energy_channel_read(struct energy_channel *channel);
/* A reading of all rails that took place from t0 to t1; by clocks of a test's own, too. */
void energy_channel_take(struct energy_channel *channel, struct energy_reading *readings,
	uint64_t t0_ns, uint64_t t1_ns, uint64_t sleep_ns);
void energy_channel_close(struct energy_channel *channel);
