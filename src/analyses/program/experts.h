/* SPDX-License-Identifier: Apache-2.0 */
/* Which experts the layers of a mixture-of-experts model chose: docs/vllm.md. */
#pragma once

#include "base/array.h"
#include "model/model.h"

#define EXPERT_WEIGHT_BINS 10

/* How often the experts of a layer were chosen. The fewest, the most and the spread are of all
 * experts, those that were never chosen included. */
struct expert_spread {
	uint64_t chosen, minimum, maximum;
	uint32_t used; /* experts that were chosen at all */
	double mean, deviation;
	double balance; /* mean / maximum: 1 when all are chosen equally often; 0 without choices */
	double entropy_bits; /* of the shares of choices: log2 of the experts when all are equal */
};

/* A layer as one process counted it. */
struct expert_layer {
	const char *name; /* "" where it is unknown */
	uint64_t number;
	uint32_t process; /* index */
	uint32_t experts, top_k;
	uint64_t calls, tokens;
	uint64_t outside;    /* ids that are of no expert */
	uint64_t lost_calls; /* counted, but not read */
	bool captured;       /* it is part of a CUDA graph, whose replays were not counted */
	bool pairs_left_out;
	size_t first_count;                   /* counts.items[first_count + expert] */
	uint64_t weights[EXPERT_WEIGHT_BINS]; /* by tenth */
	struct expert_spread spread;
	/* Of tokens whose probabilities of all experts were recorded. */
	uint64_t routed_tokens;
	double router_entropy_bits; /* of a token, the mean; NaN: not known */
	/*
	 * Experts x sum of (share of choices x mean probability): the loss of W. Fedus, B. Zoph and
	 * N. Shazeer, Switch Transformers, 2022, equations 4 to 6, without its factor. 1 when both
	 * are even, and at most the number of experts. Without probabilities, shares of choices
	 * stand for them. NaN: nothing was chosen.
	 */
	double load_balance;
};

/* Two experts, the first one smaller, that one token chose. */
struct expert_pair {
	uint32_t layer; /* index */
	uint32_t first, second;
	uint64_t count;
};

/* What was chosen between two readings of a layer. */
struct expert_reading {
	uint32_t layer; /* index */
	uint64_t time_ns;
	struct expert_spread spread;
};

struct experts {
	ARRAY_OF(struct expert_layer) layers; /* by process and number */
	ARRAY_OF(uint64_t) counts;
	ARRAY_OF(double) probabilities;           /* sums over tokens, beside counts */
	ARRAY_OF(struct expert_pair) pairs;       /* by layer, then the most frequent first */
	ARRAY_OF(struct expert_reading) readings; /* in the order of time */
};

/* Returns 0 or -ENOMEM. Strings are the model's. */
int experts_init(struct experts *experts, const struct model *model);
void experts_done(struct experts *experts);
#define _cleanup_experts_ _cleanup_(experts_done)

/* Expert numbers of a layer, most chosen first, at most `limit`. Returns how many. */
size_t experts_top(const struct experts *experts, const struct expert_layer *layer, size_t limit,
	uint32_t *ret_experts);
