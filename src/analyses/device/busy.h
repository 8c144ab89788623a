/* SPDX-License-Identifier: Apache-2.0 */
/* How long devices were busy with the work of each row of a table: overlapping work of a device
 * counts once. Zero-initialise. */
#pragma once

#include "base/map.h"
#include "model/model.h"

struct device_busy {
	struct intern keys;          /* of a device and a row */
	ARRAY_OF(uint64_t) until_ns; /* by id of a key: from then on the device has no work of it */
};

/* Adds to `busy_ns` of the row what this work adds to it. Works come in the order of their starts.
 * Returns 0 or -ENOMEM. */
int device_busy_add(struct device_busy *busy, const struct model_launched *work, uint32_t row,
	uint64_t *busy_ns);
void device_busy_done(struct device_busy *busy);
