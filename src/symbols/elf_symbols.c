/* SPDX-License-Identifier: Apache-2.0 */
/* Reading .symtab and .dynsym through libelf, which does not copy tables that are aligned in the
 * file. */
#include "symbols/elf_symbols.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"

bool elf_section_find(
	struct elf_file *file, const char *name, Elf_Scn **ret_section, GElf_Shdr *ret_header)
{
	Elf *elf = elf_file_libelf(file);
	Elf_Scn *section = NULL;
	size_t names_index;

	if (!elf || elf_getshdrstrndx(elf, &names_index) < 0)
		return false;
	while ((section = elf_nextscn(elf, section))) {
		const char *found;

		if (!gelf_getshdr(section, ret_header))
			continue;
		found = elf_strptr(elf, names_index, ret_header->sh_name);
		if (found && strcmp(found, name) == 0) {
			*ret_section = section;
			return true;
		}
	}
	return false;
}

bool elf_section_present(struct elf_file *file, const char *name)
{
	Elf_Scn *section;
	GElf_Shdr header;

	return elf_section_find(file, name, &section, &header) && header.sh_type != SHT_NOBITS;
}

/* What a symbol's section says about it. */
struct section_facts {
	uint64_t end;
	bool executable, known;
};

struct table_reading {
	struct symbol_candidates *candidates;
	const struct elf_file *file;
	struct elf_symbol_table table;
	struct section_facts *sections;
	size_t section_count;
};

static size_t length_to_last_nul(const char *bytes, size_t length)
{
	const char *last = length ? memrchr(bytes, '\0', length) : NULL;

	return last ? (size_t)(last - bytes) + 1 : 0;
}

static int read_section_facts(struct table_reading *reading, Elf *elf)
{
	Elf_Scn *section = NULL;

	if (elf_getshdrnum(elf, &reading->section_count) < 0)
		reading->section_count = 0;
	reading->sections = calloc(
		reading->section_count ? reading->section_count : 1, sizeof(*reading->sections));
	if (!reading->sections)
		return -ENOMEM;
	while ((section = elf_nextscn(elf, section))) {
		size_t index = elf_ndxscn(section);
		GElf_Shdr header;

		if (index >= reading->section_count || !gelf_getshdr(section, &header))
			continue;
		reading->sections[index] = (struct section_facts){
			.known = header.sh_addr != 0,
			.executable = header.sh_flags & SHF_EXECINSTR,
		};
		if (__builtin_add_overflow(
			    header.sh_addr, header.sh_size, &reading->sections[index].end))
			reading->sections[index].known = false;
	}
	return 0;
}

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
	const struct section_facts *section = NULL;
	bool is_label = ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE;

	if (!segment || !segment->executable)
		return false;
	*ret_end = segment->vaddr + segment->memory_size;
	if (symbol->st_shndx < reading->section_count && symbol->st_shndx < SHN_LORESERVE)
		section = &reading->sections[symbol->st_shndx];
	if (!section || !section->known)
		return !is_label;
	if (is_label && !section->executable)
		return false;
	if (section->end < *ret_end)
		*ret_end = section->end;
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

	if (!names_code(symbol) || symbol->st_name >= reading->table.strings_length ||
		!code_end(reading, symbol, &candidate.end))
		return 0;
	candidate.name = reading->table.strings + symbol->st_name;
	if (is_better_left_out(candidate.name))
		return 0;
	candidate.rank = name_rank(symbol, candidate.name);
	candidate.sized = symbol->st_size != 0;
	candidate.label = !candidate.sized && ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE &&
			  ELF64_ST_BIND(symbol->st_info) == STB_LOCAL;
	if (candidate.sized && symbol->st_size < candidate.end - candidate.start)
		candidate.end = candidate.start + symbol->st_size;
	return array_append(reading->candidates, candidate);
}

bool elf_symbol_table_read(struct elf_symbol_table *ret_table, Elf *elf, Elf_Scn *section)
{
	Elf_Data *data, *strings;
	Elf_Scn *strings_section;
	GElf_Shdr header;

	if (!section || !gelf_getshdr(section, &header) || header.sh_entsize != sizeof(Elf64_Sym) ||
		(header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
		return false;
	strings_section = elf_getscn(elf, header.sh_link);
	data = elf_getdata(section, NULL);
	strings = strings_section ? elf_getdata(strings_section, NULL) : NULL;
	if (!data || !data->d_buf || !strings || !strings->d_buf)
		return false;
	*ret_table = (struct elf_symbol_table){
		.symbols = data->d_buf,
		.symbol_count = data->d_size / sizeof(Elf64_Sym),
		.strings = strings->d_buf,
		.strings_length = length_to_last_nul(strings->d_buf, strings->d_size),
	};
	return true;
}

int elf_symbols_collect(struct symbol_candidates *candidates, const struct elf_file *file,
	struct elf_file *source, uint32_t table_type)
{
	struct table_reading reading = {.candidates = candidates, .file = file};
	Elf *elf = elf_file_libelf(source);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int result;

	if (!elf)
		return 0;
	result = read_section_facts(&reading, elf);
	while (result == 0 && (section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != table_type ||
			!elf_symbol_table_read(&reading.table, elf, section))
			continue;
		for (size_t i = 1; i < reading.table.symbol_count && result == 0; i++) {
			Elf64_Sym symbol = elf_symbol_table_get(&reading.table, i);

			result = add_symbol(&reading, &symbol);
		}
	}
	free(reading.sections);
	return result;
}
