/* SPDX-License-Identifier: Apache-2.0 */
/* What got slower than in a baseline, as a document of its own: `sonde report --regress`. */
#pragma once

#include "analyses/cpu/regress.h"
#include "report/result.h"

struct regress_report {
	const struct regress *regress;
	double threshold_percent;
	const char *const *baselines;
	size_t baseline_count;
	const char *const *captures;
	size_t capture_count;
	size_t limit;         /* rows; 0: all in JSON, 20 in the terminal */
	const char *left_out; /* what filters do not apply to, a sentence; NULL: nothing */
};

/* Fills in the result, which is zero-initialised. Returns 0 or -ENOMEM. */
int regress_report_make(struct result *result, const struct regress_report *report);
/* The JSON Schema of the document. Likewise. */
int regress_report_schema(struct strbuf *out);
/* What a row is of, in a sentence: "step", "programs". */
const char *regress_report_kind(const struct regress *regress, enum regress_kind kind);
