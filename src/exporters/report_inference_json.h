/* SPDX-License-Identifier: Apache-2.0 */
/* The report's parts about inference, as JSON: docs/json.md. */
#pragma once

#include "analyses/inference/slo.h"
#include "analyses/selection.h"
#include "base/json.h"
#include "model/model.h"

/*
 * The members "tokens", "inference", "phases" and "layers", each null where there are none; at most
 * `limit` requests (0: all). `slo` NULL: no limits were given. Returns 0 or -ENOMEM.
 */
int report_inference_json(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct inference_slo *slo, size_t limit);
