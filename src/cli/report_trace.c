/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_trace.h"

#include <string.h>

const struct trace_section *const trace_sections[] = {
	&temporal_section,
	&idle_section,
	&overlap_section,
	&kernel_section,
	&bandwidth_section,
	&launches_section,
	&queue_section,
	&operators_section,
	&annotations_section,
	NULL,
};

const struct trace_section *trace_section_find(const char *name)
{
	for (const struct trace_section *const *section = trace_sections; *section; section++) {
		if (strcmp((*section)->name, name) == 0)
			return *section;
	}
	return NULL;
}
