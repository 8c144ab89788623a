/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids → places. Ids that were counted up lie close together: then it is an array, whose memory is
 * touched in the order of ids, where that of a hash map is touched all over; else it is a hash map.
 */
#pragma once

#include "base/map.h"

struct id_map {
	uint32_t *places; /* of first, first + 1 …: place + 1; 0: none */
	uint64_t first, span;
	struct map_u64 others;
};

/* For `count` ids from `first` to `last`; zero-initialised, it is empty. Returns 0 or -ENOMEM. */
int id_map_init(struct id_map *map, uint64_t first, uint64_t last, size_t count);
/* `id` is one of those; place < UINT32_MAX. An older place is replaced. Returns 0 or -ENOMEM. */
int id_map_set(struct id_map *map, uint64_t id, uint32_t place);
void id_map_done(struct id_map *map);

/* True and *ret_place when the id is there. ret_place may be NULL. */
static inline bool id_map_get(const struct id_map *map, uint64_t id, uint64_t *ret_place)
{
	if (!map->span)
		return map_u64_get(&map->others, id, ret_place);
	if (id - map->first >= map->span || !map->places[id - map->first])
		return false;
	if (ret_place)
		*ret_place = map->places[id - map->first] - 1;
	return true;
}
