/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/function_starts.h"

#include <elf.h>
#include <string.h>

static int compare_starts(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static int read_symbols(struct function_starts *starts, struct elf_file *file, const char *section)
{
	struct elf_bytes bytes;

	if (!elf_file_section(file, section, &bytes))
		return 0;
	for (size_t at = 0; bytes.length - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;

		memcpy(&symbol, bytes.bytes + at, sizeof(symbol));
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF)
			continue;
		if (array_append(&starts->items, symbol.st_value) < 0)
			return -ENOMEM;
	}
	return 0;
}

int function_starts_read(struct function_starts *starts, struct elf_file *file)
{
	if (read_symbols(starts, file, ".symtab") < 0 || read_symbols(starts, file, ".dynsym") < 0)
		return -ENOMEM;
	if (starts->items.count)
		qsort(starts->items.items, starts->items.count, sizeof(uint64_t), compare_starts);
	return 0;
}

void function_starts_done(struct function_starts *starts)
{
	array_done(&starts->items);
}

uint64_t function_starts_next(const struct function_starts *starts, uint64_t vaddr, uint64_t end)
{
	size_t low = 0, high = starts->items.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (starts->items.items[middle] <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < starts->items.count ? MIN(end, starts->items.items[low]) : end;
}

bool function_starts_has(const struct function_starts *starts, uint64_t vaddr)
{
	return function_starts_next(starts, vaddr - 1, vaddr + 1) == vaddr;
}
