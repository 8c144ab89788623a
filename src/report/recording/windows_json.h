/* SPDX-License-Identifier: Apache-2.0 */
/* The report's parts about windows and steps, as JSON. */
#pragma once

#include "analyses/energy/span_energy.h"
#include "analyses/selection.h"
#include "base/json.h"
#include "model/model.h"

/* The members "windows" and "steps": null where there are none. `limit`: of the list of the slowest
 * steps; 0: the default. Returns 0 or -ENOMEM. */
int report_windows_json(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct span_energy *energy, size_t limit);
