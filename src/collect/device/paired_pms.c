/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs counted in an interval: counters of the process that uses them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "capture/gpu_counter.h"
#include "collect/device/paired_state.h"

#define BYTES_OF_GB 1e9

int paired_add_pm(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_pm *record)
{
	const struct device_interval device = {
		.start = record->start, .end = record->end, .pairs = process->clock.count};
	uint32_t gpu = device_gpu_number(record->device);
	struct host_interval host;
	int r = 0;

	if (!gpu || record->start >= record->end || record->end >= DEVICE_MAX_NS ||
		!paired_clock_convert(&process->clock, &device, &host) ||
		host.start_ns >= DEVICE_MAX_NS)
		return paired_drop(collector);
	for (size_t i = 0; r == 0 && i < WIRE_PM_MAX; i++) {
		char name[64];
		struct capture_counter counter = {
			.time_ns = host.start_ns, .pid = process->pid, .name = name};

		memcpy(&counter.value, &record->values[i], sizeof(counter.value));
		if (!isfinite(counter.value))
			continue;
		if (i >= WIRE_PM_DRAM_READ_BYTES)
			counter.value /= BYTES_OF_GB;
		snprintf(name, sizeof(name), "GPU %u %s", gpu - 1,
			capture_gpu_counter_name((enum wire_pm_counter)i));
		r = device_output_counter(collector->output, &counter);
	}
	return r;
}
