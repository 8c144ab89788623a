/* SPDX-License-Identifier: Apache-2.0 */
/* The report's part about ranges, as JSON. */
#pragma once

#include "analyses/energy/span_energy.h"
#include "analyses/selection.h"
#include "base/json.h"
#include "model/model.h"

/* The member "ranges": null where no program told of any. Returns 0 or -ENOMEM. */
int report_ranges_json(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct span_energy *energy);
