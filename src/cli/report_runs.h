/* SPDX-License-Identifier: Apache-2.0 */
/* sonde report --by run: several recordings of inference side by side. */
#pragma once

#include "analyses/inference/cost.h"
#include "load/capture.h"
#include "report/render.h"

struct report_runs_arguments {
	const struct shown_options *shown;
	const struct selection *selection;
	struct energy_rates rates;
	const char *predict; /* "batch_size=16,context_length=2048"; NULL: nothing */
	enum report_form form;
};

/* Returns the exit status. */
int report_runs(
	const struct report_runs_arguments *arguments, const char *const *captures, size_t count);
