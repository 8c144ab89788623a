/* SPDX-License-Identifier: Apache-2.0 */
/* A symbol table of an ELF file and its strings, checked. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "elf/elf_file.h"

/* As they lie in the file; lives as long as the file. */
struct elf_symbol_table {
	const void *symbols; /* of Elf64_Sym, perhaps unaligned */
	size_t symbol_count;
	const char *strings;
	size_t strings_length; /* up to and with the last NUL: offsets below it are of C strings */
};

/* Fills the table from the section `index`; false when it is no usable symbol table. */
bool elf_symbol_table_read(struct elf_symbol_table *ret_table, struct elf_file *file, size_t index);

static inline Elf64_Sym elf_symbol_table_get(const struct elf_symbol_table *table, size_t index)
{
	Elf64_Sym symbol;

	memcpy(&symbol, (const char *)table->symbols + index * sizeof(symbol), sizeof(symbol));
	return symbol;
}

/* NULL when the file does not have it. A name may be as long as the strings are. */
static inline const char *elf_symbol_table_name(
	const struct elf_symbol_table *table, const Elf64_Sym *symbol)
{
	return symbol->st_name < table->strings_length ? table->strings + symbol->st_name : NULL;
}
