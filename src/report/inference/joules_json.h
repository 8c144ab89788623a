/* SPDX-License-Identifier: Apache-2.0 */
/* The member "energy" of rows: docs/json.md. */
#pragma once

#include "analyses/inference/cost.h"
#include "analyses/inference/joules.h"
#include "base/json.h"

/* `rates` NULL: no cost and no CO2. */
void json_member_joules(
	struct json_writer *json, const struct joules *joules, const struct energy_rates *rates);
