/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

enum slot_state { SLOT_EMPTY, SLOT_LIVE, SLOT_DELETED };

struct map_u64_slot {
	uint64_t key, value;
	enum slot_state state;
};

/* Finaliser of MurmurHash3 (Austin Appleby, public domain). */
uint64_t hash_u64(uint64_t value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdULL;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53ULL;
	value ^= value >> 33;
	return value;
}

uint64_t hash_bytes(const void *bytes, size_t length, uint64_t seed)
{
	const unsigned char *cursor = bytes;
	uint64_t hash = 0xcbf29ce484222325ULL ^ seed, word;

	for (; length >= sizeof(word); cursor += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, cursor, sizeof(word));
		hash = hash_u64(hash ^ word) * 0x100000001b3ULL;
	}
	for (; length; cursor++, length--)
		hash = (hash ^ *cursor) * 0x100000001b3ULL;
	return hash_u64(hash);
}

static struct map_u64_slot *map_u64_probe(
	const struct map_u64 *map, uint64_t key, struct map_u64_slot **ret_free)
{
	size_t mask = map->capacity - 1, index = hash_u64(key) & mask;

	for (;; index = (index + 1) & mask) {
		struct map_u64_slot *slot = &map->slots[index];

		if (slot->state == SLOT_LIVE && slot->key == key)
			return slot;
		if (slot->state != SLOT_LIVE && ret_free && !*ret_free)
			*ret_free = slot;
		if (slot->state == SLOT_EMPTY)
			return NULL;
	}
}

static int map_u64_rehash(struct map_u64 *map, size_t capacity)
{
	struct map_u64 grown = {.capacity = capacity};

	grown.slots = calloc(capacity, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	want_huge_pages(grown.slots, capacity * sizeof(*grown.slots));
	for (size_t i = 0; i < map->capacity; i++) {
		struct map_u64_slot *room = NULL;

		if (map->slots[i].state != SLOT_LIVE)
			continue;
		map_u64_probe(&grown, map->slots[i].key, &room);
		*room = map->slots[i];
		grown.count = ++grown.used;
	}
	free(map->slots);
	*map = grown;
	return 0;
}

int map_u64_set(struct map_u64 *map, uint64_t key, uint64_t value)
{
	struct map_u64_slot *slot, *room = NULL;

	if ((map->used + 1) * 4 > map->capacity * 3) {
		size_t capacity = map->capacity ? map->capacity : 16;

		if ((map->count + 1) * 2 > capacity)
			capacity *= 2;
		if (map_u64_rehash(map, capacity) < 0)
			return -ENOMEM;
	}
	slot = map_u64_probe(map, key, &room);
	if (slot) {
		slot->value = value;
		return 0;
	}
	map->used += room->state == SLOT_EMPTY;
	map->count++;
	*room = (struct map_u64_slot){.key = key, .value = value, .state = SLOT_LIVE};
	return 0;
}

bool map_u64_get(const struct map_u64 *map, uint64_t key, uint64_t *ret_value)
{
	const struct map_u64_slot *slot = map->capacity ? map_u64_probe(map, key, NULL) : NULL;

	if (slot && ret_value)
		*ret_value = slot->value;
	return slot != NULL;
}

bool map_u64_remove(struct map_u64 *map, uint64_t key)
{
	struct map_u64_slot *slot = map->capacity ? map_u64_probe(map, key, NULL) : NULL;

	if (!slot)
		return false;
	slot->state = SLOT_DELETED;
	map->count--;
	return true;
}

bool map_u64_next(
	const struct map_u64 *map, size_t *position, uint64_t *ret_key, uint64_t *ret_value)
{
	for (; *position < map->capacity; (*position)++) {
		const struct map_u64_slot *slot = &map->slots[*position];

		if (slot->state != SLOT_LIVE)
			continue;
		*ret_key = slot->key;
		*ret_value = slot->value;
		(*position)++;
		return true;
	}
	return false;
}

void map_u64_clear(struct map_u64 *map)
{
	if (map->slots)
		memset(map->slots, 0, map->capacity * sizeof(*map->slots));
	map->count = map->used = 0;
}

void map_u64_done(struct map_u64 *map)
{
	free(map->slots);
	*map = (struct map_u64){0};
}

/* Half of the product's bits depend on each bit of both. */
static inline uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t load_u64(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* Up to 16 bytes as two words, which overlap where there are fewer. */
static inline uint64_t hash_rest(const unsigned char *at, size_t length, uint64_t hash)
{
	uint64_t first = 0, last = 0;

	if (length >= sizeof(first)) {
		first = load_u64(at);
		last = load_u64(at + length - sizeof(last));
	} else if (length >= sizeof(uint32_t)) {
		uint32_t low, high;

		memcpy(&low, at, sizeof(low));
		memcpy(&high, at + length - sizeof(high), sizeof(high));
		first = low;
		last = high;
	} else if (length) {
		first = (uint64_t)at[0] << 16 | (uint64_t)at[length / 2] << 8 | at[length - 1];
	}
	return fold(first ^ 0x9e3779b97f4a7c15ULL ^ length, last ^ hash);
}

/* For strings in memory: faster than hash_bytes(), and free to become another one. */
static inline uint32_t hash_string(const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	uint64_t hash = 0xd6e8feb86659fd93ULL;
	size_t left = length;

	for (; left > 16; left -= 16, at += 16)
		hash = fold(load_u64(at) ^ 0xa0761d6478bd642fULL, load_u64(at + 8) ^ hash);
	hash = hash_rest(at, left, hash ^ length);
	return (uint32_t)(hash ^ hash >> 32);
}

#define INTERN_NO_ENTRY   UINT32_MAX
#define INTERN_BLOCK_SIZE ((size_t)64 * 1024)

static size_t intern_probe(
	const struct intern *intern, const void *bytes, size_t length, uint32_t hash)
{
	size_t mask = intern->slot_count - 1, index = hash & mask;

	for (;; index = (index + 1) & mask) {
		uint32_t id = intern->slots[index];
		const struct intern_entry *entry;

		if (id == INTERN_NO_ENTRY)
			return index;
		entry = &intern->entries.items[id];
		/* memcmp() of no bytes, too, wants pointers, and callers may have none. */
		if (entry->hash == hash && entry->length == length &&
			(!length || memcmp(entry->bytes, bytes, length) == 0))
			return index;
	}
}

static int intern_rehash(struct intern *intern)
{
	size_t slot_count = intern->slot_count ? intern->slot_count * 2 : 64;
	uint32_t *slots = malloc(slot_count * sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, slot_count * sizeof(*slots));
	for (size_t id = 0; id < intern->entries.count; id++) {
		size_t index = intern->entries.items[id].hash & (slot_count - 1);

		while (slots[index] != INTERN_NO_ENTRY)
			index = (index + 1) & (slot_count - 1);
		slots[index] = (uint32_t)id;
	}
	free(intern->slots);
	intern->slots = slots;
	intern->slot_count = slot_count;
	return 0;
}

static char *intern_copy(struct intern *intern, const void *bytes, size_t length)
{
	char *copy;

	if (intern->block_size - intern->block_used < length + 1) {
		size_t size = MAX(INTERN_BLOCK_SIZE, length + 1);

		copy = malloc(size);
		if (!copy || array_append(&intern->blocks, copy) < 0) {
			free(copy);
			return NULL;
		}
		intern->block_size = size;
		intern->block_used = 0;
	}
	copy = intern->blocks.items[intern->blocks.count - 1] + intern->block_used;
	if (length)
		memcpy(copy, bytes, length);
	copy[length] = '\0';
	intern->block_used += length + 1;
	return copy;
}

int intern_add(struct intern *intern, const void *bytes, size_t length, uint32_t *ret_id)
{
	uint32_t hash = hash_string(bytes, length);
	struct intern_entry entry = {.length = (uint32_t)length, .hash = hash};
	size_t index;

	if (length > UINT32_MAX)
		return -ENOMEM;
	if ((intern->entries.count + 1) * 2 > intern->slot_count && intern_rehash(intern) < 0)
		return -ENOMEM;
	index = intern_probe(intern, bytes, length, hash);
	if (intern->slots[index] != INTERN_NO_ENTRY) {
		*ret_id = intern->slots[index];
		return 0;
	}
	if (array_reserve(&intern->entries, 1) < 0)
		return -ENOMEM;
	entry.bytes = intern_copy(intern, bytes, length);
	if (!entry.bytes)
		return -ENOMEM;
	*ret_id = intern->slots[index] = (uint32_t)intern->entries.count;
	intern->entries.items[intern->entries.count++] = entry;
	return 1;
}

bool intern_find(const struct intern *intern, const void *bytes, size_t length, uint32_t *ret_id)
{
	size_t index;

	if (!intern->slot_count || length > UINT32_MAX)
		return false;
	index = intern_probe(intern, bytes, length, hash_string(bytes, length));
	if (intern->slots[index] == INTERN_NO_ENTRY)
		return false;
	*ret_id = intern->slots[index];
	return true;
}

void intern_done(struct intern *intern)
{
	array_foreach (&intern->blocks, block)
		free(*block);
	array_done(&intern->blocks);
	array_done(&intern->entries);
	free(intern->slots);
	*intern = (struct intern){0};
}
