/* SPDX-License-Identifier: Apache-2.0 */
/* The report's part about counters, as JSON. */
#pragma once

#include "base/json.h"
#include "model/model.h"

/* The member "counters": null where no program told of any. Returns 0 or -ENOMEM. */
int report_counters_json(struct json_writer *json, const struct model *model);
