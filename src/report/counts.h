/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted once of a model, for all sections. */
#pragma once

#include "report/view.h"

struct report_counts {
	struct range_use ranges;
	struct step_use steps;
	struct window_use windows;
	struct inference inference;
	struct phase_use phases;
	struct layer_use layers;
	struct span_energy *span_energy; /* NULL: nothing was measured */
	struct inference_joules joules;
};

/*
 * Counts what view->selected holds, before it is weighed, and has the view point to it. Zero-
 * initialise. Returns 0 or -ENOMEM.
 */
int report_counts_init(struct report_counts *counts, struct report_view *view);
void report_counts_done(struct report_counts *counts);
#define _cleanup_report_counts_ _cleanup_(report_counts_done)
