/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/ranges.h"

#include <string.h>

#include "arch/arch.h"
#include ARCH_HEADER(files)

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

/* .plt: a header that goes to the dynamic linker, then entries. */
static int add_lazy_plt(struct unwind_ranges *ranges, const struct elf_bytes *plt)
{
	uint64_t begin = plt->vaddr, end = plt->vaddr + plt->length;
	const uint8_t *entry = plt->bytes;
	uint16_t pushed_at;
	int result = 0;

	if (plt->length < ARCH_PLT_ENTRY_BYTES || begin % ARCH_PLT_ENTRY_BYTES)
		return 0;
	if (arch_is_plt_header(entry) && plt->length >= ARCH_PLT_HEADER_BYTES) {
		result = add_plt_range(
			ranges, UNWIND_RANGE_PLT_HEADER, begin, begin + ARCH_PLT_HEADER_BYTES, 0);
		begin += ARCH_PLT_HEADER_BYTES;
		entry += ARCH_PLT_HEADER_BYTES;
	}
	if (result < 0 || end - begin < ARCH_PLT_ENTRY_BYTES)
		return result;
	pushed_at = arch_plt_pushed_at(entry);
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
