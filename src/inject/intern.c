/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/intern.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ULL;
	return hash ? hash : 1;
}

static inline struct interned *place_of(
	struct interned *table, size_t capacity, uint64_t hash, const char *text)
{
	size_t i = (hash * 0x9e3779b97f4a7c15ULL) >> 24;

	for (;; i++) {
		struct interned *place = &table[i & (capacity - 1)];

		if (!place->hash || (place->hash == hash &&
					    (!text || (place->text && !strcmp(place->text, text)))))
			return place;
	}
}

static bool grow(struct interner *interner)
{
	size_t capacity = interner->capacity ? interner->capacity * 2 : 256;
	struct interned *table = calloc(capacity, sizeof(*table));

	if (!table)
		return false;
	for (size_t i = 0; i < interner->capacity; i++) {
		const struct interned *old = &interner->table[i];

		if (old->hash)
			*place_of(table, capacity, old->hash, old->text) = *old;
	}
	free(interner->table);
	interner->table = table;
	interner->capacity = capacity;
	return true;
}

static struct interned *add(struct interner *interner, uint64_t hash, const char *text)
{
	struct interned *place;

	if (interner->count * 2 >= interner->capacity && !grow(interner))
		return NULL;
	place = place_of(interner->table, interner->capacity, hash, text);
	if (text) {
		place->text = strdup(text);
		if (!place->text)
			return NULL;
	}
	place->hash = hash;
	interner->count++;
	return place;
}

static inline struct interned *intern(struct interner *interner, uint64_t hash, const char *text)
{
	struct interned *place = NULL;

	if (interner->capacity)
		place = place_of(interner->table, interner->capacity, hash, text);
	return place && place->hash ? place : add(interner, hash, text);
}

struct interned *intern_number(struct interner *interner, uint64_t number)
{
	return intern(interner, number + 1, NULL);
}

struct interned *intern_text(struct interner *interner, const char *text)
{
	return intern(interner, hash_text(text), text);
}

bool interned_is_sent(const struct interned *place)
{
	return place->id && place->sent_to == inject_image();
}

uint32_t interned_id(struct interner *interner, struct interned *place)
{
	if (!place->id)
		place->id = interner->id_base | ++interner->last_id;
	return place->id;
}

void interned_set_sent(struct interned *place)
{
	place->sent_to = inject_image();
}
