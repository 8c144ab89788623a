/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each name of a range once in the process: a table that grows only, without locks, in memory of
 * its own, since a range may begin inside of the program's allocator.
 */
#include <string.h>
#include <sys/mman.h>

#include "inject/nvtx/nvtx.h"

#define SLOT_COUNT  (1U << 18)
#define MAX_TEXTS   (1U << 17)
#define ARENA_BYTES ((size_t)32 << 20)
#define TOO_MANY_ID 1

static struct {
	_Atomic(struct nvtx_text *) slots[SLOT_COUNT];
	char arena[ARENA_BYTES];
	char slack[sizeof(struct nvtx_text) + WIRE_RANGE_TEXT_BYTES]; /* see registered() */
} * table;

static _Atomic size_t arena_used;
static _Atomic uint32_t last_id = TOO_MANY_ID;
static _Atomic(struct nvtx_text *) too_many;

/* Memory comes page by page, as it is used. */
bool nvtx_texts_open(void)
{
	void *memory = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	table = memory;
	return true;
}

static uint32_t hash_of(const char *bytes, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3ULL;
	return (uint32_t)(hash ^ hash >> 32);
}

/* NULL: no room. */
static struct nvtx_text *make(const char *bytes, size_t length, uint32_t hash, bool is_cut)
{
	size_t size = (sizeof(struct nvtx_text) + length + 1 + 7) / 8 * 8, at;
	struct nvtx_text *text;

	if (atomic_load_explicit(&last_id, memory_order_relaxed) >= MAX_TEXTS ||
		atomic_load_explicit(&arena_used, memory_order_relaxed) + size > ARENA_BYTES)
		return NULL;
	at = atomic_fetch_add_explicit(&arena_used, size, memory_order_relaxed);
	if (at + size > ARENA_BYTES)
		return NULL;
	text = (struct nvtx_text *)(table->arena + at);
	text->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
	text->hash = hash;
	text->is_cut = is_cut;
	text->length = (uint16_t)length;
	memcpy(text->bytes, bytes, length); /* fresh memory ends it */
	return text;
}

static struct nvtx_text *none_left(void)
{
	static const char name[] = "[too many names]";
	struct nvtx_text *text = atomic_load_explicit(&too_many, memory_order_acquire);

	if (!text) {
		static _Alignas(8) char memory[sizeof(*text) + sizeof(name)];
		struct nvtx_text *made = (struct nvtx_text *)memory;

		made->id = TOO_MANY_ID; /* by several threads at once: all write the same */
		made->length = sizeof(name) - 1;
		memcpy(made->bytes, name, sizeof(name));
		atomic_store_explicit(&too_many, made, memory_order_release);
		text = made;
	}
	return text;
}

static bool is_text(const struct nvtx_text *text, const char *bytes, size_t length, uint32_t hash)
{
	return text->hash == hash && text->length == length &&
	       memcmp(text->bytes, bytes, length) == 0;
}

struct nvtx_text *nvtx_text_of(const char *bytes, size_t length, bool is_cut)
{
	uint32_t hash = hash_of(bytes, length);
	struct nvtx_text *made = NULL, *known;

	for (uint32_t at = hash % SLOT_COUNT;; at = (at + 1) % SLOT_COUNT) {
		known = atomic_load_explicit(&table->slots[at], memory_order_acquire);
		if (!known && !made) {
			made = make(bytes, length, hash, is_cut);
			if (!made)
				return none_left();
		}
		if (!known && atomic_compare_exchange_strong_explicit(&table->slots[at], &known,
				      made, memory_order_acq_rel, memory_order_acquire))
			return made;
		if (is_text(known, bytes, length, hash))
			return known;
	}
}

struct nvtx_text *nvtx_text_ascii(const char *text)
{
	size_t length;

	if (!text)
		return NULL;
	length = strnlen(text, WIRE_RANGE_TEXT_BYTES + 1);
	if (length > WIRE_RANGE_TEXT_BYTES)
		return nvtx_text_of(text, WIRE_RANGE_TEXT_BYTES, true);
	return nvtx_text_of(text, length, false);
}

/* UTF-8 of a character; U+FFFD for what is none. Returns its bytes. */
static size_t encode(uint32_t character, char *to)
{
	if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
		character = 0xfffd;
	if (character < 0x80) {
		to[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		to[0] = (char)(0xc0 | character >> 6);
		to[1] = (char)(0x80 | (character & 0x3f));
		return 2;
	}
	if (character < 0x10000) {
		to[0] = (char)(0xe0 | character >> 12);
		to[1] = (char)(0x80 | (character >> 6 & 0x3f));
		to[2] = (char)(0x80 | (character & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | character >> 18);
	to[1] = (char)(0x80 | (character >> 12 & 0x3f));
	to[2] = (char)(0x80 | (character >> 6 & 0x3f));
	to[3] = (char)(0x80 | (character & 0x3f));
	return 4;
}

struct nvtx_text *nvtx_text_wide(const wchar_t *text)
{
	char bytes[WIRE_RANGE_TEXT_BYTES];
	size_t length = 0;

	if (!text)
		return NULL;
	while (*text && length + 4 <= sizeof(bytes))
		length += encode((uint32_t)*text++, bytes + length);
	return nvtx_text_of(bytes, length, *text);
}

/* The slack lets a wrong handle into the arena be read as far as a text may go. */
struct nvtx_text *nvtx_text_registered(void *handle)
{
	struct nvtx_text *text = handle;

	if (text && text == atomic_load_explicit(&too_many, memory_order_acquire))
		return text;
	if ((const char *)handle < table->arena || (uintptr_t)handle % 8 ||
		(const char *)handle >= table->arena + ARENA_BYTES ||
		text->length > WIRE_RANGE_TEXT_BYTES)
		return NULL;
	return text;
}

void nvtx_texts_forget(void)
{
	struct nvtx_text *text;

	for (uint32_t i = 0; i < SLOT_COUNT; i++) {
		text = atomic_load_explicit(&table->slots[i], memory_order_acquire);
		if (text)
			atomic_store_explicit(&text->is_defined, false, memory_order_relaxed);
	}
	text = atomic_load_explicit(&too_many, memory_order_acquire);
	if (text)
		atomic_store_explicit(&text->is_defined, false, memory_order_relaxed);
}

static bool define(const struct nvtx_text *text)
{
	struct {
		struct wire_range_text head;
		char bytes[WIRE_RANGE_PIECE_BYTES];
	} piece;
	uint16_t at = 0;

	do {
		uint16_t bytes = (uint16_t)(text->length - at < WIRE_RANGE_PIECE_BYTES
						    ? text->length - at
						    : WIRE_RANGE_PIECE_BYTES);
		uint32_t padded = (bytes + 7U) / 8 * 8;

		memset(&piece, 0, sizeof(piece.head) + padded);
		piece.head.record.type = WIRE_RECORD_RANGE_TEXT;
		piece.head.record.length_bytes = (uint32_t)sizeof(piece.head) + padded;
		piece.head.image = inject_image();
		piece.head.id = text->id;
		piece.head.at = at;
		piece.head.bytes = bytes;
		piece.head.total = text->length;
		piece.head.is_cut = text->is_cut;
		memcpy(piece.bytes, text->bytes + at, bytes);
		if (!inject_write(&piece.head.record))
			return false;
		at = (uint16_t)(at + bytes);
	} while (at < text->length);
	return true;
}

/* Sent again at the next use where the ring was full. */
void nvtx_text_define(struct nvtx_text *text)
{
	if (!atomic_exchange_explicit(&text->is_defined, true, memory_order_relaxed) &&
		!define(text))
		atomic_store_explicit(&text->is_defined, false, memory_order_relaxed);
}
