/* SPDX-License-Identifier: Apache-2.0 */
/* What inference engines did, in the report's JSON. */
#pragma once

#include "base/json.h"
#include "model/model.h"

/* The members "requests" and "experts", each null where there are none; at most `limit` requests,
 * and pairs of each layer, 0: all requests, 100 pairs. Returns 0 or -ENOMEM. */
int report_vllm_json(struct json_writer *json, const struct model *model, size_t limit);
