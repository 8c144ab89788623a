/* SPDX-License-Identifier: Apache-2.0 */
/* What the report's JSON says of CUDA: for report_json.c. */
#pragma once

#include "analyses/device/device_work.h"
#include "base/json.h"

/* The member "cuda", null where no process used it. Returns 0 or -ENOMEM. */
int report_json_cuda(
	struct json_writer *json, const struct model *model, const struct device_work *work);
