/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All sources of energy of a recording: finds them, makes one tree of their rails, and hands over
 * what they measured. A rail that two sources read counts once.
 *
 * Call order: open → (drain without a sink → take_baseline)? → start → drain* → finish → free. One
 * thread; the sources have their own.
 */
#pragma once

#include "base/errmsg.h"
#include "base/strbuf.h"
#include "sources/energy/source.h"

struct energy_sampler;

struct energy_sampler_options {
	/*
	 * "auto", or a list of sources: "perf,nvml". "replay:FILE", as the list's last: all that
	 * follows is the file's name.
	 */
	const char *sources; /* NULL: none */
	const char *model;   /* a file that estimates what no sensor measures; NULL: none */
	const struct energy_place *place; /* NULL: this machine */
	uint64_t tick_ns; /* each is read so often, unless that costs too much; 0: as each says */
	uint64_t wait_ns; /* for sources to be open; those that take longer come later */
};

/* Whom figures are handed to; each returns 0 or a negative errno, which ends the drain. */
struct energy_sink {
	void *context;
	int (*domain)(void *context, const struct wire_energy_domain *domain);
	int (*interval)(void *context, const struct wire_energy_interval *interval);
	int (*state)(void *context, const struct wire_energy_state *state);
	int (*absence)(void *context, const struct wire_energy_absence *absence);
};

/* A domain, and what came of it since the start. */
struct energy_sampled {
	struct wire_energy_domain domain;
	uint64_t tick_ns; /* it is read this often; 0: a replay, or a model */
	uint64_t energy_nj, measured_ns, gap_ns;
};

/* -EINVAL with a sentence when the list names no source, or a replay is no recording. */
int energy_sampler_open(struct energy_sampler **ret_sampler,
	const struct energy_sampler_options *options, struct errmsg *err);
struct energy_sampler *energy_sampler_free(struct energy_sampler *sampler);
void energy_sampler_freep(struct energy_sampler **sampler);
#define _cleanup_energy_sampler_ _cleanup_(energy_sampler_freep)

/* Domains in the order of their ids; they stay where they are. Twins are left out. */
unsigned energy_sampler_count(const struct energy_sampler *sampler);
const struct energy_sampled *energy_sampler_at(
	const struct energy_sampler *sampler, unsigned index);
/*
 * The sources in their table's order: what is missing of each, "" where nothing is, NULL behind the
 * last. `ret_source`: which one.
 */
const char *energy_sampler_absence(const struct energy_sampler *sampler, unsigned index,
	const struct energy_source **ret_source);

/* What was measured so far is the machine at rest: idle_w of each domain. */
void energy_sampler_take_baseline(struct energy_sampler *sampler);
/* The recording begins: energy from here on is its own, and a replay's times count from here. */
void energy_sampler_start(struct energy_sampler *sampler, uint64_t start_ns);
/* Hands over what there is. `sink` NULL: it is only added up. Returns 0 or the sink's error. */
int energy_sampler_drain(struct energy_sampler *sampler, const struct energy_sink *sink);
/*
 * Hands over the rest up to `end_ns`, and ends the threads, in bounded time. Time of which nothing
 * is known is a gap.
 */
int energy_sampler_finish(
	struct energy_sampler *sampler, uint64_t end_ns, const struct energy_sink *sink);
/* Sentences on what to know of the figures. */
void energy_sampler_notes(const struct energy_sampler *sampler,
	void (*add)(void *context, const char *sentence), void *context);
