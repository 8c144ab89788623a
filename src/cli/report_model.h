/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde report` of one model: loads it, and has its sections printed or written. */
#pragma once

#include "analyses/cpu/breakdown.h"
#include "analyses/energy/span_energy.h"
#include "analyses/inference/cost.h"
#include "analyses/inference/slo.h"
#include "model/shown.h"
#include "report/document.h"
#include "report/rows.h"

struct report_arguments {
	struct shown_options *shown; /* of another tool's trace, cpu becomes wall */
	struct selection *selection; /* its weight is set when samples are weighed */
	const char *by;              /* --by; NULL: all sections */
	enum breakdown_sort sort;
	size_t limit; /* 0: as suits */
	enum report_form form;
	const struct inference_slo *slo; /* NULL: no limits were given */
	struct energy_rates rates;
	/* Of rows. */
	struct trace_view_options rows;
	struct trace_choice choice;
	uint64_t rank;  /* UINT64_MAX: all */
	bool rows_only; /* of a recording, too: see struct load_options */
};

/* Prints it, or why there is none. Returns the exit status. */
int report_model(const struct report_arguments *arguments, const char *const *paths, size_t count);
