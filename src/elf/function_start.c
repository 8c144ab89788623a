/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where functions begin in a file without symbols: .eh_frame_hdr has a sorted table of them, which
 * strip leaves alone because exceptions need it.
 */
#include <string.h>

#include "elf/elf_file.h"

/* What every linker writes: 4-byte offsets from .eh_frame_hdr, and a 4-byte count. */
#define VERSION           1
#define POINTER_PCREL_S4  0x1b
#define COUNT_U4          0x03
#define TABLE_DATAREL_S4  0x3b
#define TABLE_AT          12
#define TABLE_ENTRY_BYTES 8

struct search_table {
	const struct elf_file *file;
	struct elf_segment header;
	uint32_t count;
};

/* The table may be megabytes and few of its entries are asked for: they are read one by one. */
static bool read_start(const struct search_table *table, uint32_t index, uint64_t *ret_start)
{
	uint64_t offset =
		table->header.file_offset + TABLE_AT + (uint64_t)index * TABLE_ENTRY_BYTES;
	int32_t start;

	if (!elf_file_read(table->file, offset, &start, sizeof(start)))
		return false;
	*ret_start = table->header.vaddr + (uint64_t)(int64_t)start;
	return true;
}

static bool open_table(const struct elf_file *file, struct search_table *ret_table)
{
	static const uint8_t layout[] = {VERSION, POINTER_PCREL_S4, COUNT_U4, TABLE_DATAREL_S4};
	struct search_table table = {.file = file};
	uint8_t head[TABLE_AT];

	if (!elf_file_eh_frame_header(file, &table.header) ||
		table.header.file_size < sizeof(head) ||
		!elf_file_read(file, table.header.file_offset, head, sizeof(head)) ||
		memcmp(head, layout, sizeof(layout)) != 0)
		return false;
	memcpy(&table.count, head + 8, sizeof(table.count));
	if (table.count > (table.header.file_size - TABLE_AT) / TABLE_ENTRY_BYTES)
		return false;
	*ret_table = table;
	return true;
}

/* The number of entries at or before `vaddr`, and the starts on both sides of it. */
static uint32_t search(
	const struct search_table *table, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_end)
{
	uint32_t low = 0, high = table->count;
	uint64_t start;

	*ret_end = UINT64_MAX;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (!read_start(table, middle, &start))
			return 0;
		if (start <= vaddr) {
			*ret_start = start;
			low = middle + 1;
		} else {
			*ret_end = start;
			high = middle;
		}
	}
	return low;
}

bool elf_file_function_range(
	const struct elf_file *file, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_end)
{
	struct search_table table;
	uint64_t start = 0, end;

	if (!open_table(file, &table) || search(&table, vaddr, &start, &end) == 0)
		return false;
	*ret_start = start;
	*ret_end = end;
	return true;
}

bool elf_file_function_covers(const struct elf_file *file, uint64_t vaddr)
{
	uint64_t offset, start = 0, end;
	struct search_table table;
	/* Of the FDE: its length, its CIE, its start relative to itself, and how far it goes. */
	uint32_t entry[4];
	uint32_t index;
	int32_t at;

	if (!open_table(file, &table))
		return false;
	index = search(&table, vaddr, &start, &end);
	if (index == 0)
		return false;
	offset = table.header.file_offset + TABLE_AT + (uint64_t)index * TABLE_ENTRY_BYTES -
		 sizeof(at);
	return elf_file_read(file, offset, &at, sizeof(at)) &&
	       elf_file_read_loaded(
		       file, table.header.vaddr + (uint64_t)(int64_t)at, entry, sizeof(entry)) &&
	       vaddr - start < entry[3];
}

uint32_t elf_file_function_count(const struct elf_file *file)
{
	struct search_table table;

	return open_table(file, &table) ? table.count : 0;
}

bool elf_file_function_start(const struct elf_file *file, uint64_t vaddr, uint64_t *ret_start)
{
	uint64_t end;

	return elf_file_function_range(file, vaddr, ret_start, &end);
}
