/* SPDX-License-Identifier: Apache-2.0 */
/* Hash maps: u64 → u64, and interning of byte strings to dense ids. Open addressing, no deletion
 * cost. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/macros.h"

/* u64 → u64. Zero-initialise to start empty. */
struct map_u64 {
	struct map_u64_slot *slots;
	size_t count, used, capacity; /* used: live and deleted slots */
};

/* Makes room for so many keys at once, live ones included. Returns 0 or -ENOMEM. */
int map_u64_reserve(struct map_u64 *map, size_t count);
/* Stores key → value, replacing an older value. Returns 0 or -ENOMEM. */
int map_u64_set(struct map_u64 *map, uint64_t key, uint64_t value);
/* True and *ret_value when the key is there. ret_value may be NULL. */
bool map_u64_get(const struct map_u64 *map, uint64_t key, uint64_t *ret_value);
bool map_u64_remove(struct map_u64 *map, uint64_t key);
/* Visits every pair: start with *position = 0; false at the end. Do not change the map meanwhile.
 */
bool map_u64_next(
	const struct map_u64 *map, size_t *position, uint64_t *ret_key, uint64_t *ret_value);
void map_u64_clear(struct map_u64 *map);
void map_u64_done(struct map_u64 *map);

/* Byte strings → ids 0, 1, 2 … in order of first appearance. Zero-initialise to start empty. */
struct intern {
	ARRAY_OF(struct intern_entry) entries;
	uint32_t *slots;
	size_t slot_count;
	ARRAY_OF(char *) blocks;
	size_t block_used, block_size;
};

struct intern_entry {
	const char *bytes; /* NUL-terminated copy, stable until intern_done() */
	uint32_t length;
	uint32_t hash;
};

/*
 * Finds or adds the string; *ret_id is its id. Returns 1 when it was added, 0 when it was known,
 * -ENOMEM.
 */
int intern_add(struct intern *intern, const void *bytes, size_t length, uint32_t *ret_id);
bool intern_find(const struct intern *intern, const void *bytes, size_t length, uint32_t *ret_id);
static inline const char *intern_get(const struct intern *intern, uint32_t id)
{
	return intern->entries.items[id].bytes;
}
void intern_done(struct intern *intern);

/* A good 64-bit mix and a hash of bytes (FNV-1a folded through the mix); stable across runs. */
uint64_t hash_u64(uint64_t value);
uint64_t hash_bytes(const void *bytes, size_t length, uint64_t seed);
