/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/ranges.h"

#include <string.h>

#define PLT_ENTRY_BYTES 16

int unwind_ranges_add_cfi(struct unwind_ranges *ranges, struct cfi *cfi)
{
	struct cfi_entry entry;
	size_t offset = 0;
	int result;

	while ((result = cfi_read_entry(cfi, offset, &entry)) > 0) {
		offset = entry.next;
		ranges->fde_count += entry.is_fde;
		ranges->corrupt_fdes += entry.corrupt;
		if (!entry.is_fde || entry.corrupt || entry.begin == entry.end)
			continue;
		if (array_append(&ranges->items, (struct unwind_range){.begin = entry.begin,
							 .end = entry.end,
							 .cfi_offset = entry.offset,
							 .kind = UNWIND_RANGE_CFI}) < 0)
			return -ENOMEM;
	}
	ranges->corrupt_fdes += result < 0;
	return 0;
}

static bool is_covered(const struct unwind_ranges *ranges, uint64_t vaddr)
{
	array_foreach (&ranges->items, range)
		if (vaddr >= range->begin && vaddr < range->end)
			return true;
	return false;
}

static int add_plt_range(struct unwind_ranges *ranges, enum unwind_range_kind kind, uint64_t begin,
	uint64_t end, uint16_t pushed_at)
{
	if (begin >= end)
		return 0;
	return array_append(&ranges->items,
		(struct unwind_range){
			.begin = begin, .end = end, .kind = kind, .pushed_at = pushed_at});
}

/* Where in a PLT entry its push ends; 0 when it has none, by the forms that linkers write. */
static uint16_t push_end(const uint8_t *entry)
{
	static const uint8_t jump[] = {0xff, 0x25}; /* jmp *slot(%rip) */
	static const uint8_t endbr_push[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0x68}; /* endbr64; push $index */

	if (memcmp(entry, jump, sizeof(jump)) == 0 && entry[6] == 0x68)
		return 11;
	if (memcmp(entry, endbr_push, sizeof(endbr_push)) == 0)
		return 9;
	return entry[0] == 0x68 ? 5 : 0;
}

/* .plt: a header that pushes the link map, then entries. */
static int add_lazy_plt(struct unwind_ranges *ranges, const struct elf_bytes *plt)
{
	static const uint8_t header[] = {0xff, 0x35}; /* push map(%rip) */
	uint64_t begin = plt->vaddr, end = plt->vaddr + plt->length;
	const uint8_t *entry = plt->bytes;
	uint16_t pushed_at;
	int result = 0;

	if (plt->length < PLT_ENTRY_BYTES || begin % PLT_ENTRY_BYTES)
		return 0;
	if (memcmp(entry, header, sizeof(header)) == 0) {
		result = add_plt_range(
			ranges, UNWIND_RANGE_PLT_HEADER, begin, begin + PLT_ENTRY_BYTES, 0);
		begin += PLT_ENTRY_BYTES;
		entry += PLT_ENTRY_BYTES;
	}
	if (result < 0 || end - begin < PLT_ENTRY_BYTES)
		return result;
	pushed_at = push_end(entry);
	return add_plt_range(ranges, pushed_at ? UNWIND_RANGE_PLT_PUSH : UNWIND_RANGE_PLT_JUMP,
		begin, end, pushed_at);
}

int unwind_ranges_add_plt(struct unwind_ranges *ranges, struct elf_file *file)
{
	static const char *const lazy[] = {".plt", ".iplt"};
	static const char *const jumps[] = {".plt.sec", ".plt.got"};
	struct elf_bytes plt;

	for (size_t i = 0; i < ARRAY_SIZE(lazy); i++)
		if (elf_file_section(file, lazy[i], &plt) && !is_covered(ranges, plt.vaddr) &&
			add_lazy_plt(ranges, &plt) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(jumps); i++)
		if (elf_file_section(file, jumps[i], &plt) && !is_covered(ranges, plt.vaddr) &&
			add_plt_range(ranges, UNWIND_RANGE_PLT_JUMP, plt.vaddr,
				plt.vaddr + plt.length, 0) < 0)
			return -ENOMEM;
	return 0;
}

/* By start; among ranges of one start the longest last, which the cut below then keeps. */
static int compare_ranges(const void *left, const void *right)
{
	const struct unwind_range *a = left, *b = right;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

static bool is_sorted(const struct unwind_ranges *ranges)
{
	for (size_t i = 1; i < ranges->items.count; i++)
		if (compare_ranges(&ranges->items.items[i - 1], &ranges->items.items[i]) > 0)
			return false;
	return true;
}

void unwind_ranges_sort(struct unwind_ranges *ranges)
{
	struct unwind_range *items = ranges->items.items;

	if (!is_sorted(ranges))
		qsort(items, ranges->items.count, sizeof(*items), compare_ranges);
	for (size_t i = 1; i < ranges->items.count; i++)
		items[i - 1].end = MIN(items[i - 1].end, items[i].begin);
}

void unwind_ranges_done(struct unwind_ranges *ranges)
{
	array_done(&ranges->items);
}
