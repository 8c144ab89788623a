/* SPDX-License-Identifier: Apache-2.0 */
/* The report's parts about counters and tokens, as JSON. */
#pragma once

#include "base/json.h"
#include "model/model.h"

/* The members "counters" and "tokens": null where no program told of any. Returns 0 or -ENOMEM. */
int report_counters_json(struct json_writer *json, const struct model *model);
