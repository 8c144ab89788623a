/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id_map.h"

#include <stdlib.h>

/* An array of so many places for each id takes as much memory as a hash map. */
#define PLACES_OF_ID 16

int id_map_init(struct id_map *map, uint64_t first, uint64_t last, size_t count)
{
	*map = (struct id_map){.first = first};
	if (!count || last < first)
		return 0;
	if (last - first >= (uint64_t)count * PLACES_OF_ID)
		return map_u64_reserve(&map->others, count);
	map->places = calloc(last - first + 1, sizeof(*map->places));
	if (!map->places)
		return -ENOMEM;
	map->span = last - first + 1;
	want_huge_pages(map->places, map->span * sizeof(*map->places));
	return 0;
}

int id_map_set(struct id_map *map, uint64_t id, uint32_t place)
{
	if (!map->span)
		return map_u64_set(&map->others, id, place);
	map->places[id - map->first] = place + 1;
	return 0;
}

void id_map_done(struct id_map *map)
{
	free(map->places);
	map_u64_done(&map->others);
	*map = (struct id_map){0};
}
