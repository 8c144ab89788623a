/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ELF file says about the names of its code: its symbol tables, and its procedure linkage
 * table. The result is raw: unsorted, with aliases and overlaps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_file.h"
#include "elf/elf_symbol_table.h"

struct symbol_candidate {
	uint64_t start;
	uint64_t end;     /* above start */
	const char *name; /* points into the file */
	uint32_t rank;    /* among names of one start the highest is the best */
	bool sized;       /* false: the file gives no size, `end` is the end of the section */
	bool label;       /* not sized, local, and not known to be a function */
	bool exported;    /* of .dynsym, which names no local functions */
};

struct symbol_candidates { /* as ARRAY_OF() */
	struct symbol_candidate *items;
	size_t count, capacity;
	const struct elf_file *file; /* whose limits hold for sorting; NULL: none do */
	uint64_t string_bytes;       /* that the names lie in; 0: unknown */
};

/* True when there is such a section and its bytes are here, not only in the other file of a debug
 * pair. */
bool elf_section_present(struct elf_file *file, const char *name);

/*
 * Appends the functions that `source`'s table of type SHT_SYMTAB or SHT_DYNSYM names inside the
 * executable segments of `file`, which may be `source` itself or the file that `source` describes.
 * A file has one table of each type: of several, which only damage or malice makes, the first is
 * read. Names live as long as `source`. Returns 0, -ENOMEM, or elf_file_status() of `file`.
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
