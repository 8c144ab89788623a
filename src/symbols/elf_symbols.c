/* SPDX-License-Identifier: Apache-2.0 */
/* Reading .symtab and .dynsym. */
#include "symbols/elf_symbols.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"

/* Symbols between two looks at the limits. */
#define SYMBOLS_AT_A_TIME 8192
/* The largest programs known have two million. */
#define SYMBOLS_MAX ((size_t)6 << 20)
/* The longest names of C++ have some ten kilobytes; each is compared with others many times. */
#define NAME_MAX_BYTES ((size_t)64 << 10)

bool elf_section_present(struct elf_file *file, const char *name)
{
	size_t index = elf_file_find_section(file, name);

	return index && elf_file_section_header(file, index)->sh_type != SHT_NOBITS;
}

struct table_reading {
	struct symbol_candidates *candidates;
	const struct elf_file *file, *source;
	struct elf_symbol_table table;
	bool exported;
};

static bool is_better_left_out(const char *name)
{
	/* Marks of assemblers and annotation plugins ($x, .L1, .annobin_…), not names of code. */
	return name[0] == '\0' || name[0] == '$' || name[0] == '.';
}

/* Functions before labels, global before weak before local, few leading underscores before many. */
static uint32_t name_rank(const Elf64_Sym *symbol, const char *name)
{
	uint32_t type = ELF64_ST_TYPE(symbol->st_info) != STT_NOTYPE;
	uint32_t binding, underscores;

	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		binding = 2;
		break;
	case STB_WEAK:
		binding = 1;
		break;
	default:
		binding = 0;
	}
	underscores = (uint32_t)strspn(name, "_");
	if (underscores == 1 && (name[1] == 'Z' || name[1] == 'R')) /* mangled */
		underscores = 0;
	return type << 16 | binding << 8 | (255 - (underscores < 255 ? underscores : 255));
}

/* The end of the code that a symbol without a size may reach: of its section, else of its segment.
 */
static bool code_end(
	const struct table_reading *reading, const Elf64_Sym *symbol, uint64_t *ret_end)
{
	const struct elf_segment *segment = elf_file_segment_at(reading->file, symbol->st_value);
	bool is_label = ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE;
	const Elf64_Shdr *section = NULL;
	uint64_t section_end;

	if (!segment || !segment->executable)
		return false;
	*ret_end = segment->vaddr + segment->memory_size;
	if (symbol->st_shndx < elf_file_section_count(reading->source) &&
		symbol->st_shndx < SHN_LORESERVE)
		section = elf_file_section_header(reading->source, symbol->st_shndx);
	if (!section || section->sh_addr == 0 ||
		__builtin_add_overflow(section->sh_addr, section->sh_size, &section_end))
		return !is_label;
	if (is_label && !(section->sh_flags & SHF_EXECINSTR))
		return false;
	*ret_end = MIN(*ret_end, section_end);
	return symbol->st_value < *ret_end;
}

static bool names_code(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_TYPE(symbol->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
	case STT_NOTYPE:
		return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0;
	default:
		return false;
	}
}

static int add_symbol(struct table_reading *reading, const Elf64_Sym *symbol)
{
	struct symbol_candidate candidate = {.start = symbol->st_value};

	candidate.name = elf_symbol_table_name(&reading->table, symbol);
	if (!candidate.name || !names_code(symbol) || is_better_left_out(candidate.name) ||
		strnlen(candidate.name, NAME_MAX_BYTES) == NAME_MAX_BYTES ||
		!code_end(reading, symbol, &candidate.end))
		return 0;
	candidate.rank = name_rank(symbol, candidate.name);
	candidate.sized = symbol->st_size != 0;
	candidate.exported = reading->exported;
	candidate.label = !candidate.sized && ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE &&
			  ELF64_ST_BIND(symbol->st_info) == STB_LOCAL;
	if (candidate.sized && symbol->st_size < candidate.end - candidate.start)
		candidate.end = candidate.start + symbol->st_size;
	if (reading->candidates->count >= SYMBOLS_MAX)
		return -EFBIG;
	return array_append(reading->candidates, candidate);
}

int elf_symbols_collect(struct symbol_candidates *candidates, const struct elf_file *file,
	struct elf_file *source, uint32_t table_type)
{
	struct table_reading reading = {
		.candidates = candidates,
		.file = file,
		.source = source,
		.exported = table_type == SHT_DYNSYM,
	};
	size_t index = elf_file_find_section_of_type(source, table_type);
	int result = 0;

	if (!elf_symbol_table_read(&reading.table, source, index))
		return 0;
	candidates->string_bytes += reading.table.strings_length;
	for (size_t i = 1; i < reading.table.symbol_count && result == 0; i++) {
		Elf64_Sym symbol = elf_symbol_table_get(&reading.table, i);

		result = add_symbol(&reading, &symbol);
		if (result == 0 && i % SYMBOLS_AT_A_TIME == 0)
			result = elf_file_status(file);
	}
	return result;
}
