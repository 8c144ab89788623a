/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "model/windows.h"

int timeline_init(struct timeline *timeline, const struct model *model,
	const struct selected *selected, size_t count)
{
	*timeline = (struct timeline){
		.start_ns = model_start_ns(model),
		.interval_ns = model_duration_ns(model) / count + 1,
		.samples = calloc(count, sizeof(*timeline->samples)),
		.count = count,
	};
	if (!timeline->samples)
		return -ENOMEM;
	for (size_t i = 0; i < model->samples.count; i++) {
		uint64_t time = model->samples.items[i].time_ns, interval;

		if (!selected->samples[i])
			continue;
		/* A sample just before the clock was read belongs to the first interval. */
		interval =
			model_recorded_ns(model, timeline->start_ns, time) / timeline->interval_ns;
		timeline->samples[MIN(interval, (uint64_t)count - 1)] +=
			model->samples.items[i].count;
	}
	return 0;
}

void timeline_done(struct timeline *timeline)
{
	free(timeline->samples);
	*timeline = (struct timeline){0};
}
