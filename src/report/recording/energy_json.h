/* SPDX-License-Identifier: Apache-2.0 */
/* The member "energy" of the report's JSON. */
#pragma once

#include "analyses/energy/use.h"
#include "analyses/inference/cost.h"
#include "base/json.h"

/*
 * null without rails and without a word on why there are none; `use` may be NULL. `rates` NULL: no
 * cost and no CO2. At most `limit` classes; 0: all.
 */
void report_energy_json(struct json_writer *json, const struct model *model,
	const struct energy_use *use, const struct energy_rates *rates, size_t limit);
