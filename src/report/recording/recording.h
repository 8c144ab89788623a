/* SPDX-License-Identifier: Apache-2.0 */
/* A recording as sections see it: with what is counted once, for all of them. */
#pragma once

#include "report/view.h"

struct report_recording {
	struct report_view view;
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
 * Counts what view->selected holds, before it is weighed, and has `view` in recording->view with
 * what was counted. view->energy is there. Returns 0 or -ENOMEM.
 */
int report_recording_init(struct report_recording *recording, const struct report_view *view);
void report_recording_done(struct report_recording *recording);
#define _cleanup_report_recording_ _cleanup_(report_recording_done)
