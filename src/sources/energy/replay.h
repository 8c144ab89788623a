/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of energy in a file, in place of sensors, or a model that estimates it: JSON Lines,
 * described in docs/energy.md. It is read as a whole before the recording begins, so that every
 * fault in it is reported then, with its line.
 */
#pragma once

#include "base/array.h"
#include "base/errmsg.h"
#include "base/strbuf.h"
#include "wire/energy.h"

#define REPLAY_DOMAINS_MAX  64
#define REPLAY_READINGS_MAX 4000000
#define REPLAY_BYTES_MAX    ((size_t)512 << 20)

struct energy_replay {
	unsigned domain_count;
	/* Texts are in `texts`; ids count from 1. */
	struct wire_energy_domain domains[REPLAY_DOMAINS_MAX];
	/* Of a model, which has no readings: power is idle_w, and this for each busy processor. */
	double busy_w[REPLAY_DOMAINS_MAX];
	/* In order of their ends; times count from the recording's start. */
	ARRAY_OF(struct wire_energy_interval) intervals;
	ARRAY_OF(struct wire_energy_state) states; /* in the file's order */
	uint64_t went_back;                        /* counters that were less than before */
	struct errmsg note; /* what is amiss and no reason to refuse the file; "" */
	ARRAY_OF(char *) texts;
};

/* -EINVAL with a sentence that names `name` and the line. */
int energy_replay_parse(struct energy_replay **ret_replay, const char *bytes, size_t length,
	const char *name, struct errmsg *err);
int energy_replay_open(struct energy_replay **ret_replay, const char *path, struct errmsg *err);
/* A model in place of a recording: one line. */
int energy_model_parse(struct energy_replay **ret_model, const char *bytes, size_t length,
	const char *name, struct errmsg *err);
int energy_model_open(struct energy_replay **ret_model, const char *path, struct errmsg *err);
struct energy_replay *energy_replay_free(struct energy_replay *replay);
void energy_replay_freep(struct energy_replay **replay);
#define _cleanup_energy_replay_ _cleanup_(energy_replay_freep)
