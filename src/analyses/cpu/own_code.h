/* SPDX-License-Identifier: Apache-2.0 */
/* What the user's own code costs, by line and by function, with all that it calls in libraries. */
#pragma once

#include "analyses/energy/uncertainty.h"
#include "analyses/selection.h"
#include "base/array.h"
#include "model/model.h"

/*
 * Of OWN_CODE_LINE a line, or where no lines are known a function. Self: samples whose
 * innermost frame of the user's own is here (model_own_frame()); total: those with it further out,
 * too, once each.
 */
struct own_code_row {
	uint32_t frame; /* the first seen there */
	uint64_t self_samples, total_samples;
	/* By energy_use_init(): of the samples, and of the device work that was launched there. */
	double self_energy_j, total_energy_j;
	struct energy_uncertainty self_uncertainty, total_uncertainty;
};

enum own_code_by {
	OWN_CODE_LINE,
	OWN_CODE_FUNCTION,
	OWN_CODE_MAX,
};

struct own_code {
	uint64_t samples; /* selected in all; what shares are of */
	uint64_t others;  /* of them: without a frame of the user's own */
	ARRAY_OF(struct own_code_row)
	rows[OWN_CODE_MAX]; /* most self samples first; none
			    of rows without any */
};

/* Returns 0 or -ENOMEM. */
int own_code_init(struct own_code *own, const struct model *model, const struct selected *selected);
void own_code_done(struct own_code *own);
#define _cleanup_own_code_ _cleanup_(own_code_done)
