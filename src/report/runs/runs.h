/* SPDX-License-Identifier: Apache-2.0 */
/* Several recordings of inference side by side, as a document of its own. */
#pragma once

#include "analyses/inference/cost.h"
#include "analyses/inference/runs.h"
#include "report/result.h"

struct runs_report {
	const struct runs *runs;
	const struct run_comparison *comparison;
	struct energy_rates rates;
	const char *predict; /* the labels as they were given; NULL: nothing is predicted */
	const struct run_prediction *prediction; /* likewise */
	enum run_figure predicted;
};

/* Fills in the result, which is zero-initialised. Returns 0 or -ENOMEM. */
int runs_report_make(struct result *result, const struct runs_report *report);
/* The JSON Schema of the document. Likewise. */
int runs_report_schema(struct strbuf *out);
