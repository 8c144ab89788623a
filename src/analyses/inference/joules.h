/* SPDX-License-Identifier: Apache-2.0 */
/* The energy of rows of a table: of phases, layers, requests, steps, ranges. */
#pragma once

#include "analyses/energy/span_energy.h"
#include "analyses/inference/phases.h"
#include "analyses/inference/span_cost.h"

/*
 * Of all the spans of a row together, on the host and on devices: NaN where a side that has a
 * source does not know it. Of a side without a source there is nothing to add, and `sides` does not
 * have it.
 */
struct joules {
	struct span_energy_part sides[SPAN_ENERGY_SIDES];
	double net_j, full_j, uncertainty_j, average_w, peak_w;
	const char
		*reason; /* why it is not known: "no_source", "shorter_than_sensor" …; else NULL */
	bool is_aggregated; /* each span is too short by itself */
	bool is_allocated;  /* a share of what several had together, by their tokens */
};

/* `energy` NULL: nothing was measured. */
struct joules joules_of_spans(
	const struct span_energy *energy, const struct energy_span *spans, size_t count);
/*
 * Of each row of the set, or of each group of rows: what all threads of its process did in its
 * spans; overlapping ones once. `groups` says which group a row is in (NULL: each is its own);
 * `count` is how many groups there are, and results have room for. Returns 0 or -ENOMEM.
 */
int joules_of_rows(const struct span_energy *energy, const struct span_set *set,
	const uint32_t *groups, size_t count, struct joules *ret_joules);

/* What inference took, by phase; requests share what they had together. */
struct inference_joules {
	struct joules all; /* from the first begin to the last token, of processes with requests */
	struct joules phases[INFERENCE_PHASE_MAX];
	ARRAY_OF(struct joules) requests; /* as inference->requests */
	/* Of the full energy; NaN: not known. */
	double per_output_token_j; /* of all, and of the decode alone */
	double decode_per_output_token_j;
	double prefill_per_prompt_token_j; /* by tokens that were computed */
	double tokens_per_j;
	double edp_per_token_js; /* energy per token · median time per token */
	/* Energy-delay products: the full energy times how long that took, of all and by phase. */
	double edp_js, phase_edp_js[INFERENCE_PHASE_MAX];
};

/*
 * Requests that come one after the other have what their process took meanwhile. Where some are at
 * the same time, energy is of the batch: each gets a share of that of all, by the time of its
 * prefill and its tokens, and `is_allocated` says so. Returns 0 or -ENOMEM.
 */
int inference_joules_init(struct inference_joules *joules, const struct span_energy *energy,
	const struct inference *inference, const struct phase_use *phases);
void inference_joules_done(struct inference_joules *joules);
#define _cleanup_inference_joules_ _cleanup_(inference_joules_done)
