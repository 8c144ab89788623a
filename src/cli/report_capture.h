/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde report` of a recording: loads it, and has its sections printed or written. */
#pragma once

#include "analyses/cpu/breakdown.h"
#include "analyses/energy/span_energy.h"
#include "analyses/inference/cost.h"
#include "analyses/inference/slo.h"
#include "model/shown.h"
#include "report/document.h"

/* What sections can be made of. */
#define KINDS_OF_RECORDING (REPORT_NEEDS_RECORDING | REPORT_NEEDS_TIMELINE | REPORT_NEEDS_PROGRAMS)

struct report_capture_arguments {
	const struct shown_options *shown;
	struct selection *selection; /* its weight is set when samples are weighed */
	const char *by;              /* --by; NULL: all sections */
	enum breakdown_sort sort;
	size_t limit; /* 0: as suits */
	enum report_form form;
	const struct inference_slo *slo; /* NULL: no limits were given */
	struct energy_rates rates;
};

/* Prints it, or why there is none. Returns the exit status. */
int report_capture(const struct report_capture_arguments *arguments, const char *path);
