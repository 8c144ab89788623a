/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu_counters.h"

#include <stdlib.h>
#include <string.h>

#include "capture/gpu_counter.h"

#define GPU_PREFIX "GPU "

bool gpu_counter_of_name(const char *name, struct gpu_counter *ret_counter)
{
	unsigned long gpu;
	char *end;

	if (strncmp(name, GPU_PREFIX, strlen(GPU_PREFIX)) != 0)
		return false;
	name += strlen(GPU_PREFIX);
	if (*name < '0' || *name > '9')
		return false;
	gpu = strtoul(name, &end, 10);
	if (*end != ' ' || gpu >= UINT32_MAX)
		return false;
	for (unsigned i = 0; i < WIRE_PM_MAX; i++) {
		if (strcmp(end + 1, capture_gpu_counter_name((enum wire_pm_counter)i)) != 0)
			continue;
		*ret_counter = (struct gpu_counter){(uint32_t)gpu, (enum wire_pm_counter)i};
		return true;
	}
	return false;
}

uint32_t gpu_counter_device(
	const struct model *model, const struct model_counter *counter, const struct trace *rows)
{
	struct gpu_counter of;
	const char *label;

	if (!gpu_counter_of_name(counter->name, &of))
		return 0;
	label = model_gpu_label(model, counter->process, of.gpu + 1);
	if (!*label)
		return 0;
	array_foreach (&rows->devices, device) {
		if (strcmp(trace_text(rows, device->name), label) == 0)
			return (uint32_t)device->number + 1;
	}
	return 0;
}
