/* SPDX-License-Identifier: Apache-2.0 */
/* Several recordings of inference side by side, as one JSON document: docs/json.md. */
#pragma once

#include "analyses/inference/cost.h"
#include "analyses/inference/runs.h"
#include "base/strbuf.h"

/* `prediction`: NULL: none was asked for. Returns 0 or -ENOMEM. */
int runs_json_write(const struct runs *runs, const struct run_comparison *comparison,
	const struct energy_rates *rates, const struct run_prediction *prediction,
	enum run_figure predicted, struct strbuf *out);
