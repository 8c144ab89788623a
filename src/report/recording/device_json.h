/* SPDX-License-Identifier: Apache-2.0 */
/* How work reaches devices, in the report's JSON: for report_json.c. */
#pragma once

#include "base/json.h"
#include "model/model.h"

/* The member "flow", an array with an object for each device. Without `idle` no
 * advice is known. Returns 0 or -ENOMEM. */
struct trace_report;
int report_json_device_flow(
	struct json_writer *json, const struct model *model, const struct trace_report *timeline);
