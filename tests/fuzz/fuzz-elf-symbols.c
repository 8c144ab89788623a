/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF file whose functions are to be named. */
#include <string.h>

#include "symbols/symbols.h"
#include "target.h"

static void search(const struct symbol_table *table, const struct elf_segment *segment)
{
	struct symbol found;

	for (uint64_t at = 0; at < segment->memory_size && at < 4096; at += 8)
		if (symbol_table_find(table, segment->vaddr + at, &found) &&
			(found.size == 0 || strlen(found.name) == 0))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	_cleanup_symbol_table_ struct symbol_table *table = NULL;
	struct errmsg err;

	if (elf_file_open_memory(&file, bytes, length, "input", &err) < 0 ||
		symbol_table_open(&table, file, NULL, "/nowhere", NULL, &err) < 0)
		return 0;
	for (size_t i = 0; i < elf_file_segment_count(file); i++)
		search(table, elf_file_segment(file, i));
	return 0;
}
