/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building, checking and searching images. Symbols may nest and overlap: each entry knows the
 * nearest one before it that ends later, so a lookup that misses the last start climbs to the next
 * that can cover the address.
 */
#include "symbols/symbol_image.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"

#define IMAGE_MAGIC     "sondesym"
#define IMAGE_VERSION   2
#define NAMES_MAX_BYTES ((size_t)512 << 20)
#define NO_ENTRY        UINT32_MAX
#define END_IS_GUESS    (1U << 31) /* see struct symbol */
/* Linkers let a name be the end of another; far more of that makes gigabytes of some kilobytes. */
#define NAMES_SHARED_MAX 16
/* Two names at a time, before the file's limits are looked at. */
#define COMPARISONS_AT_A_TIME 4096

struct symbol_image_header {
	char magic[8];
	uint32_t version;
	uint32_t count;
	struct symbol_image_key key;
	uint64_t names_length;
	uint64_t checksum; /* of the header before it, the starts and the entries */
};

struct symbol_image_entry {
	uint32_t size;  /* END_IS_GUESS may be added */
	uint32_t name;  /* offset in names */
	uint32_t outer; /* index of the nearest earlier entry that ends later; NO_ENTRY */
	/*
	 * Names are most of an image, and few are ever asked for: each is checked when it is, so
	 * that opening the image of a large library reads an eighth of it.
	 */
	uint32_t name_checksum;
};

_Static_assert(sizeof(struct symbol_image_header) == 56, "stored in cache files");
_Static_assert(sizeof(struct symbol_image_entry) == 16, "stored in cache files");

/* ---- Layout ---- */

static uint64_t load_u64(const unsigned char *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static uint64_t mix(uint64_t state, uint64_t word)
{
	state = (state ^ word) * 0x9e3779b97f4a7c15ULL;
	return state ^ state >> 29;
}

/* Four independent lanes, since every opening of a cache file waits for it. */
static uint64_t checksum(const void *bytes, size_t length, uint64_t seed)
{
	const unsigned char *at = bytes;
	uint64_t lanes[4] = {seed, ~seed, seed + length, seed ^ 0x5851f42d4c957f2dULL};
	unsigned char tail[32] = {0};

	for (; length >= sizeof(tail); at += sizeof(tail), length -= sizeof(tail))
		for (size_t i = 0; i < 4; i++)
			lanes[i] = mix(lanes[i], load_u64(at + 8 * i));
	memcpy(tail, at, length);
	for (size_t i = 0; i < 4; i++)
		lanes[i] = mix(lanes[i], load_u64(tail + 8 * i));
	return mix(mix(lanes[0], lanes[1]), mix(lanes[2], lanes[3]));
}

static size_t tables_length(const struct symbol_image_header *header)
{
	return header->count * (sizeof(uint64_t) + sizeof(struct symbol_image_entry));
}

static uint64_t image_checksum(const struct symbol_image_header *header)
{
	uint64_t sum = checksum(header, offsetof(struct symbol_image_header, checksum), 0);

	return checksum(header + 1, tables_length(header), sum);
}

static uint32_t name_checksum(const char *name)
{
	return (uint32_t)checksum(name, strlen(name), 0);
}

/* 32-bit counts and a bounded names_length: the sum does not overflow. */
static size_t image_length(const struct symbol_image_header *header)
{
	return sizeof(*header) + tables_length(header) + header->names_length;
}

static void point_into(struct symbol_image *image, const struct symbol_image_header *header)
{
	image->header = header;
	image->starts = (const uint64_t *)(header + 1);
	image->entries = (const struct symbol_image_entry *)(image->starts + header->count);
	image->names = (const char *)(image->entries + header->count);
}

int symbol_image_view(struct symbol_image *ret_image, const void *bytes, size_t length)
{
	const struct symbol_image_header *header = bytes;

	if (length < sizeof(*header) ||
		memcmp(header->magic, IMAGE_MAGIC, sizeof(header->magic)) != 0 ||
		header->version != IMAGE_VERSION || header->names_length > NAMES_MAX_BYTES ||
		image_length(header) != length || image_checksum(header) != header->checksum)
		return -EBADMSG;
	/* Then every name offset below names_length is the offset of a C string. */
	if (header->names_length && ((const char *)bytes)[length - 1] != '\0')
		return -EBADMSG;
	point_into(ret_image, header);
	return 0;
}

bool symbol_image_serves(const struct symbol_image *image, const struct symbol_image_key *key)
{
	const struct symbol_image_key *made = &image->header->key;

	return made->identity == key->identity &&
	       (!key->own_fingerprint || key->own_fingerprint == made->own_fingerprint) &&
	       (!key->debug_fingerprint || key->debug_fingerprint == made->debug_fingerprint);
}

/* ---- Searching ---- */

static uint32_t size_of(const struct symbol_image_entry *entry)
{
	return entry->size & ~END_IS_GUESS;
}

static size_t count_up_to(const struct symbol_image *image, uint64_t vaddr)
{
	size_t low = 0, high = image->header->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (image->starts[middle] <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Fills the symbol of an entry; -EBADMSG when its name is not what it was. */
static int read_entry(const struct symbol_image *image, size_t index, struct symbol *ret_symbol)
{
	const struct symbol_image_entry *entry = &image->entries[index];
	const char *name = image->names + entry->name;

	if (entry->name >= image->header->names_length ||
		name_checksum(name) != entry->name_checksum)
		return -EBADMSG;
	*ret_symbol = (struct symbol){
		.name = name,
		.vaddr = image->starts[index],
		.size = size_of(entry),
		.end_is_guess = entry->size & END_IS_GUESS,
	};
	return 1;
}

int symbol_image_find(const struct symbol_image *image, uint64_t vaddr, struct symbol *ret_symbol)
{
	size_t index = count_up_to(image, vaddr);

	/* `outer` is followed downwards only, so that damaged entries cannot make this endless. */
	for (size_t next; index > 0; index = next + 1) {
		index--;
		if (vaddr - image->starts[index] < size_of(&image->entries[index]))
			return read_entry(image, index, ret_symbol);
		next = image->entries[index].outer;
		if (next >= index)
			return 0;
	}
	return 0;
}

/* ---- Building ---- */

struct sorting {
	const struct elf_file *file;
	uint64_t compared;
	bool stopped;
};

/* Stopped by a limit, all are equal: sorting ends soon, and nobody uses what it made. */
static int compare_candidates(const void *left, const void *right, void *context)
{
	const struct symbol_candidate *a = left, *b = right;
	struct sorting *sorting = context;

	if (sorting->file && ++sorting->compared % COMPARISONS_AT_A_TIME == 0)
		sorting->stopped |= elf_file_status(sorting->file) < 0;
	if (sorting->stopped)
		return 0;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->sized != b->sized)
		return a->sized ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank > b->rank ? -1 : 1;
	if (a->exported != b->exported)
		return a->exported ? 1 : -1;
	return strcmp(a->name, b->name);
}

void symbol_candidates_sort(struct symbol_candidates *candidates)
{
	struct sorting sorting = {.file = candidates->file};

	if (candidates->count)
		qsort_r(candidates->items, candidates->count, sizeof(*candidates->items),
			compare_candidates, &sorting);
}

/*
 * Keeps the first of each start, and of what has no size only what no function reaches. A function
 * reaches to its end or, where the file gives none, to the next function: hand-written kernels,
 * those of BLAS libraries among them, are full of local labels that would otherwise stand for the
 * function in every report.
 */
static void thin_out(struct symbol_candidates *candidates)
{
	uint64_t covered_to = 0, reach = 0;
	size_t kept = 0;

	array_foreach (candidates, candidate) {
		if (kept && candidates->items[kept - 1].start == candidate->start)
			continue;
		if (candidate->start < (candidate->label          ? reach
					       : candidate->sized ? 0
								  : covered_to))
			continue;
		if (candidate->sized)
			reach = covered_to = MAX(covered_to, candidate->end);
		else if (!candidate->label)
			reach = candidate->end;
		candidates->items[kept++] = *candidate;
	}
	candidates->count = kept;
}

/* What has no size ends where the next symbol begins. */
static void end_unsized(struct symbol_candidates *candidates)
{
	for (size_t i = 0; i + 1 < candidates->count; i++) {
		struct symbol_candidate *candidate = &candidates->items[i];

		if (!candidate->sized)
			candidate->end = MIN(candidate->end, candidate[1].start);
	}
}

static void fill_entries(uint64_t *starts, struct symbol_image_entry *entries,
	const struct symbol_candidates *candidates)
{
	for (size_t i = 0; i < candidates->count; i++) {
		const struct symbol_candidate *candidate = &candidates->items[i];
		uint32_t outer = i ? (uint32_t)(i - 1) : NO_ENTRY;

		starts[i] = candidate->start;
		entries[i].size =
			(uint32_t)MIN(candidate->end - candidate->start, (uint64_t)INT32_MAX);
		if (candidate->exported && !candidate->sized)
			entries[i].size |= END_IS_GUESS;
		while (outer != NO_ENTRY && candidates->items[outer].end <= candidate->end)
			outer = entries[outer].outer;
		entries[i].outer = outer;
	}
}

static void fill_names(
	char *names, struct symbol_image_entry *entries, const struct symbol_candidates *candidates)
{
	char *at = names;

	for (size_t i = 0; i < candidates->count; i++) {
		entries[i].name = (uint32_t)(at - names);
		entries[i].name_checksum = name_checksum(candidates->items[i].name);
		at = stpcpy(at, candidates->items[i].name) + 1;
	}
}

int symbol_image_build(void **ret_bytes, size_t *ret_length, struct symbol_candidates *candidates,
	const struct symbol_image_key *key)
{
	struct symbol_image_header draft = {.version = IMAGE_VERSION, .key = *key}, *header;
	uint64_t shared_max =
		candidates->string_bytes ? NAMES_SHARED_MAX * candidates->string_bytes : UINT64_MAX;
	uint64_t names_max = MIN((uint64_t)NAMES_MAX_BYTES, shared_max);
	struct symbol_image image;
	size_t length;

	symbol_candidates_sort(candidates);
	if (candidates->file && elf_file_status(candidates->file) < 0)
		return elf_file_status(candidates->file);
	thin_out(candidates);
	end_unsized(candidates);
	if (candidates->count >= NO_ENTRY)
		return -EFBIG;
	draft.count = (uint32_t)candidates->count;
	array_foreach (candidates, candidate) {
		draft.names_length += strlen(candidate->name) + 1;
		if (draft.names_length > names_max)
			return -EFBIG;
	}
	length = image_length(&draft);
	header = malloc(length);
	if (!header)
		return -ENOMEM;
	memcpy(draft.magic, IMAGE_MAGIC, sizeof(draft.magic));
	*header = draft;
	point_into(&image, header);
	fill_entries(
		(uint64_t *)image.starts, (struct symbol_image_entry *)image.entries, candidates);
	fill_names((char *)image.names, (struct symbol_image_entry *)image.entries, candidates);
	header->checksum = image_checksum(header);
	*ret_bytes = header;
	*ret_length = length;
	return 0;
}
