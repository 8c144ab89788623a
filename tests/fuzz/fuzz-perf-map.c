/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a perf map, read in two pieces. */
#include <string.h>

#include "symbols/perf_map.h"
#include "target.h"

/* A name that is found is text of the file, never empty. */
static void look_up(const struct perf_map *map, uint64_t address)
{
	const char *name;

	if (perf_map_find(map, address, &name) && strlen(name) == 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct perf_map *map = perf_map_new();
	size_t first = length ? bytes[0] * length / 256 : 0;

	if (!map)
		return 0;
	perf_map_add_text(map, (const char *)bytes, first);
	perf_map_add_text(map, (const char *)bytes + first, length - first);
	for (uint64_t address = 1; address; address <<= 1)
		look_up(map, address);
	for (uint64_t address = 0; address < 512; address++)
		look_up(map, address);
	look_up(map, UINT64_MAX);
	perf_map_free(map);
	return 0;
}
