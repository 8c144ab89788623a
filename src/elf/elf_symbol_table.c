/* SPDX-License-Identifier: Apache-2.0 */
#include "elf/elf_symbol_table.h"

static size_t length_to_last_nul(const char *bytes, size_t length)
{
	const char *last = length ? memrchr(bytes, '\0', length) : NULL;

	return last ? (size_t)(last - bytes) + 1 : 0;
}

bool elf_symbol_table_read(struct elf_symbol_table *ret_table, struct elf_file *file, size_t index)
{
	struct elf_bytes symbols, strings;
	const Elf64_Shdr *header;

	if (index == 0 || index >= elf_file_section_count(file))
		return false;
	header = elf_file_section_header(file, index);
	if (header->sh_entsize != sizeof(Elf64_Sym) ||
		(header->sh_type != SHT_SYMTAB && header->sh_type != SHT_DYNSYM) ||
		!elf_file_section_bytes(file, index, &symbols) ||
		!elf_file_section_bytes(file, header->sh_link, &strings))
		return false;
	*ret_table = (struct elf_symbol_table){
		.symbols = symbols.bytes,
		.symbol_count = symbols.length / sizeof(Elf64_Sym),
		.strings = (const char *)strings.bytes,
		.strings_length = length_to_last_nul((const char *)strings.bytes, strings.length),
	};
	return true;
}
