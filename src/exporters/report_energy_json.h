/* SPDX-License-Identifier: Apache-2.0 */
/* The member "energy" of the report's JSON. */
#pragma once

#include "analyses/energy/energy_use.h"
#include "base/json.h"

/* null without rails and without a word on why there are none; `use` may be NULL. At most `limit`
 * classes; 0: all. */
void report_energy_json(struct json_writer *json, const struct model *model,
	const struct energy_use *use, size_t limit);
