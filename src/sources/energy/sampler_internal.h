/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the sampler share: its rails, and who reads them. */
#pragma once

#include "sources/energy/busy_clock.h"
#include "sources/energy/replay.h"
#include "sources/energy/sampler.h"
#include "sources/energy/worker.h"

#define CHANNELS_MAX  8
#define RAILS_MAX     256
#define MODEL_STEP_NS (100 * NS_PER_MS)
/* The time before a counter's first step and after its last one is no gap. */
#define EDGE_NS NS_PER_S

struct rail {
	struct energy_sampled sampled;  /* id 0: not placed yet, or a twin */
	struct energy_channel *channel; /* NULL: the replay, or the model */
	unsigned index;                 /* in the channel */
	int parent, twin_of;            /* indices in sampler.rails; -1 */
	bool is_sent;                   /* the sink knows the domain as it is now */
	bool is_compared;               /* with its twin */
	int busy_group;                 /* of busy_clock.h */
	uint64_t until_ns;              /* handed over so far */
	struct wire_energy_state state; /* of before the start, not handed over; domain 0: none */
	uint32_t gaps;                  /* bits: enum wire_energy_gap */
};

struct channel {
	struct energy_worker *worker;
	struct energy_channel *channel;
	bool is_adopted, is_sent; /* reported: its absence */
};

struct worker {
	struct energy_worker *worker;
	bool is_stopped, has_ended; /* stopped, and its thread has ended */
};

struct energy_sampler {
	struct energy_place place;
	uint64_t tick_ns;
	unsigned channel_count, rail_count, placed_count;
	struct channel channels[CHANNELS_MAX]; /* in the table's order */
	unsigned worker_count;
	struct worker workers[CHANNELS_MAX];
	struct rail rails[RAILS_MAX];
	unsigned order[RAILS_MAX]; /* by id - 1 */
	struct energy_replay *replay;
	size_t next_interval, next_state; /* of the replay */
	struct energy_replay *model;
	unsigned model_rails;    /* the first of its rails */
	uint64_t model_until_ns; /* handed over so far */
	struct busy_clock busy;
	uint64_t opened_ns, start_ns, end_ns;
	bool is_auto; /* all sources are asked, whether they are there or not */
	struct errmsg twin_note;
	bool replay_goes_on; /* behind the recording's end */
};

static inline const struct energy_rail *found_rail(const struct rail *rail)
{
	return &rail->channel->found.rails[rail->index];
}

static inline bool is_rapl(const struct energy_source *source)
{
	return source == &perf_energy || source == &powercap_energy;
}

static inline double sampled_mean_w(const struct energy_sampled *sampled)
{
	return sampled->measured_ns ? (double)sampled->energy_nj / (double)sampled->measured_ns : 0;
}

/* ---- the tree of rails: sampler_rails.c ---- */

/* The rails of a replay, and of a model: before those of sources. */
void sampler_adopt_replay(struct energy_sampler *sampler);
void sampler_adopt_model(struct energy_sampler *sampler);
/* Those of sources that have been opened since the last look; waits for the others until the
 * deadline. */
void sampler_adopt_sources(struct energy_sampler *sampler, uint64_t deadline_ns);

/* ---- handing over: sampler_drain.c ---- */

/* What there is up to that time. Returns 0 or the sink's error. */
int sampler_drain_until(
	struct energy_sampler *sampler, uint64_t until_ns, const struct energy_sink *sink);
/* At the end: what rails are missing that do not come so far. Returns 0 or the sink's error. */
int sampler_drain_last_gaps(struct energy_sampler *sampler, const struct energy_sink *sink);
