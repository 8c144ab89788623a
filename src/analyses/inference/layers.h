/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the layers and components of a model took, by the ranges of the domain "sonde.model", whose
 * fields are `role` ("step", "layer", "self_attn", "q" …) and `layer`. docs/hooks.md says who
 * makes them. Forward passes (steps) that had no hooks inside count apart.
 *
 * Each row has the time of its own: what its ranges took without those inside them, the CPU samples
 * and the device work that lie in no range inside them. So rows add up to the time of the steps.
 * The rest of a range that has others inside is a row with a name of its own: of `self_attn` it is
 * "attn_core" (the attention without its projections), of `mlp` "mlp_core", of others "other".
 */
#pragma once

#include "analyses/inference/span_cost.h"

#define LAYER_NONE UINT64_MAX

struct layer_row {
	uint64_t layer;   /* LAYER_NONE: of the model as such, as its embeddings are */
	const char *role; /* as marked, or as above */
	uint32_t process;
	uint64_t calls;    /* ranges */
	uint64_t total_ns; /* with what is inside; `own_ns` without */
	uint64_t own_ns;
	uint64_t own_cpu_ns; /* where ranges carry it; see layer_use.has_cpu */
	struct span_cost own;
	bool is_rest; /* the row is what is left of a range */
};

struct layer_use {
	ARRAY_OF(struct layer_row) rows; /* by the first range of each */
	uint64_t steps;   /* forward passes with ranges inside: those that lie in no other */
	uint64_t step_ns; /* what these took */
	/* Of one token a sequence, with ranges inside and without: what they cost. */
	struct layer_passes {
		uint64_t count, total_ns;
	} watched, unwatched;
	uint64_t unwatched_steps;
	uint64_t layers_ns; /* of that in layers; `model_ns` in other components */
	uint64_t model_ns;
	uint64_t rest_ns; /* of that in neither */
	struct span_cost all;
	uint64_t cpu_ns;
	bool has_cpu;
	struct span_set spans; /* the time of each row's own; `rows` of which are those above */
};

/* Returns 0 or -ENOMEM. Strings are the model's. */
int layer_use_init(
	struct layer_use *use, const struct model *model, const struct selected *selected);
void layer_use_done(struct layer_use *use);
#define _cleanup_layer_use_ _cleanup_(layer_use_done)
