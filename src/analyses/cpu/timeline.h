/* SPDX-License-Identifier: Apache-2.0 */
/* Samples over time: how busy the CPUs were in each of equal intervals of the recorded time, in
 * which windows follow on each other. */
#pragma once

#include "analyses/selection.h"
#include "model/model.h"

struct timeline {
	uint64_t start_ns, interval_ns; /* start: as the samples' times; interval > 0 */
	uint64_t *samples;              /* by interval */
	size_t count;
};

/* Cuts the recording into `count` (> 0) intervals. Returns 0 or -ENOMEM. */
int timeline_init(struct timeline *timeline, const struct model *model,
	const struct selected *selected, size_t count);
void timeline_done(struct timeline *timeline);
#define _cleanup_timeline_ _cleanup_(timeline_done)
