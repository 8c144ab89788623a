/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the text of /proc/PID/maps. */
#include <stdlib.h>
#include <string.h>

#include "sources/process/proc_maps.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct proc_maps maps = {0};
	char *text = malloc(length + 1);

	if (!text)
		return 0;
	memcpy(text, bytes, length);
	text[length] = '\0';
	proc_maps_add_text(&maps, text);
	array_foreach (&maps.mappings, mapping) {
		const char *name = proc_mapping_name(&maps, mapping);

		if (mapping->name_offset >= maps.names.length || strchr(name, '\n') ||
			(!mapping->inode && mapping->file_offset))
			abort();
	}
	proc_maps_done(&maps);
	free(text);
	return 0;
}
