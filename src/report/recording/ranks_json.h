/* SPDX-License-Identifier: Apache-2.0 */
/* The report's part about the ranks of a distributed job, as JSON. */
#pragma once

#include "base/json.h"
#include "model/model.h"

/* The member "ranks": null where no range or step is of two ranks. Returns 0 or -ENOMEM. */
int report_ranks_json(struct json_writer *json, const struct model *model);
