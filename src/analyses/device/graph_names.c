/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is a graph which the device launched has a name that says so, and by which graph. */
#include <string.h>

#include "analyses/device/graphs.h"
#include "base/text.h"

void device_graph_add_name(struct device_graph *graph, const char *name)
{
	if (!begins_with(name, WIRE_DEVICE_GRAPH_NAME))
		return;
	graph->device_replays++;
	for (uint32_t i = 0; i < graph->device_name_count; i++)
		if (strcmp(graph->device_names[i], name) == 0)
			return;
	if (graph->device_name_count < DEVICE_GRAPH_NAMES)
		graph->device_names[graph->device_name_count++] = name;
}
