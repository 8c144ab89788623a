/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ELF file says about the names of its code: its symbol tables, and its procedure linkage
 * table. The result is raw: unsorted, with aliases and overlaps.
 */
#pragma once

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "elf/elf_file.h"

struct symbol_candidate {
	uint64_t start;
	uint64_t end;     /* above start */
	const char *name; /* points into the file */
	uint32_t rank;    /* among names of one start the highest is the best */
	bool sized;       /* false: the file gives no size, `end` is the end of the section */
	bool label;       /* not sized, local, and not said to be a function */
};

struct symbol_candidates { /* as ARRAY_OF() */
	struct symbol_candidate *items;
	size_t count, capacity;
};

/* A section by name; false when there is none. Unlike elf_file_section() it does not decompress. */
bool elf_section_find(
	struct elf_file *file, const char *name, Elf_Scn **ret_section, GElf_Shdr *ret_header);

/* True when there is such a section and its bytes are here, not only in the other file of a debug
 * pair. */
bool elf_section_present(struct elf_file *file, const char *name);

/* A table of symbols and its strings, as they lie in the file. */
struct elf_symbol_table {
	const void *symbols; /* of Elf64_Sym, perhaps unaligned */
	size_t symbol_count;
	const char *strings;
	size_t strings_length; /* up to and with the last NUL: offsets below it are of C strings */
};

/* Fills the table from a section, which may be NULL; false when it is no usable symbol table. */
bool elf_symbol_table_read(struct elf_symbol_table *ret_table, Elf *elf, Elf_Scn *section);

static inline Elf64_Sym elf_symbol_table_get(const struct elf_symbol_table *table, size_t index)
{
	Elf64_Sym symbol;

	memcpy(&symbol, (const char *)table->symbols + index * sizeof(symbol), sizeof(symbol));
	return symbol;
}

/*
 * Appends the functions that `source`'s tables of type SHT_SYMTAB or SHT_DYNSYM name inside the
 * executable segments of `file`, which may be `source` itself or the file that `source` describes.
 * Names live as long as `source`. Returns 0 or -ENOMEM.
 */
int elf_symbols_collect(struct symbol_candidates *candidates, const struct elf_file *file,
	struct elf_file *source, uint32_t table_type);

/*
 * Appends "NAME@plt" for each entry of .plt, .plt.sec and .plt.got. The candidates so far must be
 * sorted by start: they name the targets of entries that have no symbol (IRELATIVE). The names are
 * in *ret_names, to be freed after the candidates' last use. Returns 0 or -ENOMEM.
 */
int plt_symbols_collect(
	struct symbol_candidates *candidates, struct elf_file *file, char **ret_names);
