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

static int32_t entry_offset(const struct elf_bytes *header, size_t index)
{
	int32_t offset;

	memcpy(&offset, header->bytes + TABLE_AT + index * TABLE_ENTRY_BYTES, sizeof(offset));
	return offset;
}

bool elf_file_function_range(
	const struct elf_file *file, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_end)
{
	static const uint8_t layout[] = {VERSION, POINTER_PCREL_S4, COUNT_U4, TABLE_DATAREL_S4};
	size_t low = 0, high, middle;
	struct elf_bytes header;
	uint32_t count;

	if (!elf_file_eh_frame_header(file, &header) || header.length < TABLE_AT ||
		memcmp(header.bytes, layout, sizeof(layout)) != 0)
		return false;
	memcpy(&count, header.bytes + 8, sizeof(count));
	if (count > (header.length - TABLE_AT) / TABLE_ENTRY_BYTES)
		return false;
	for (high = count; low < high;) {
		middle = low + (high - low) / 2;
		if (header.vaddr + (uint64_t)(int64_t)entry_offset(&header, middle) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	*ret_start = header.vaddr + (uint64_t)(int64_t)entry_offset(&header, low - 1);
	*ret_end = low < count ? header.vaddr + (uint64_t)(int64_t)entry_offset(&header, low)
			       : UINT64_MAX;
	return true;
}

bool elf_file_function_start(const struct elf_file *file, uint64_t vaddr, uint64_t *ret_start)
{
	uint64_t end;

	return elf_file_function_range(file, vaddr, ret_start, &end);
}
