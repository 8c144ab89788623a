/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the phases of inference took: prefill, decode, and around them.
 *
 * Phases of a process are its ranges of these names where it has any: those of the hooks
 * (transformers' `prefill` and `decode`, vLLM's `forward`, which says its phase), and sonde.range()
 * called "pre_inference", "prefill", "decode" or "post_inference". Of other processes they are
 * those of the requests: from the begin of the prefill to the first token, and on to the last.
 */
#pragma once

#include "analyses/inference/inference.h"
#include "analyses/inference/span_cost.h"

enum inference_phase {
	INFERENCE_PHASE_PRE,
	INFERENCE_PHASE_PREFILL,
	INFERENCE_PHASE_MIXED, /* batches of both */
	INFERENCE_PHASE_DECODE,
	INFERENCE_PHASE_POST,
	INFERENCE_PHASE_MAX,
};

/* "pre_inference", "prefill" … */
const char *inference_phase_name(enum inference_phase phase);

struct phase_row {
	uint64_t count; /* times that there was such a phase; 0: none */
	uint64_t total_ns;
	uint64_t covered_ns; /* overlapping ones once */
	uint64_t tokens;     /* prefill: computed ones of prompts; decode: output */
	bool tokens_known;
	struct span_cost cost;
};

struct phase_use {
	struct phase_row rows[INFERENCE_PHASE_MAX];
	bool has_any;
	bool overlaps;         /* there were several phases at once: rows do not add up */
	struct span_set spans; /* `rows` of which are phases */
};

/* Returns 0 or -ENOMEM. */
int phase_use_init(struct phase_use *use, const struct model *model,
	const struct selected *selected, const struct inference *inference);
void phase_use_done(struct phase_use *use);
#define _cleanup_phase_use_ _cleanup_(phase_use_done)
