/* SPDX-License-Identifier: Apache-2.0 */
/* The report's parts about inference, as JSON: docs/json.md. */
#pragma once

#include "analyses/energy/span_energy.h"
#include "analyses/inference/cost.h"
#include "analyses/inference/slo.h"
#include "analyses/selection.h"
#include "base/json.h"
#include "model/model.h"

struct report_inference_json_options {
	const struct inference_slo *slo;  /* NULL: no limits were given */
	const struct energy_rates *rates; /* NULL: no cost and no CO2 */
	const struct span_energy *energy; /* NULL: nothing was measured */
	size_t limit;                     /* requests; 0: all */
};

/*
 * The members "tokens", "inference", "phases" and "layers", each null where there are none. Returns
 * 0 or -ENOMEM.
 */
int report_inference_json(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct report_inference_json_options *options);
