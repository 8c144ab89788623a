/* SPDX-License-Identifier: Apache-2.0 */
/* What would help devices, behind the answer (answer.c): sentences with who is to blame. */
#pragma once

#include "analyses/program/summary.h"
#include "report/section.h"

#define ADVICE_NAME_COLUMNS 48 /* of names in sentences, the answer's, too */

/* Each advice of the summary, and what it can save. Returns 0 or -ENOMEM. */
int report_add_device_advice(struct result *result, const struct report_input *input,
	const struct trace_summary *summary);
