/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for addresses of one ELF file. Built from .symtab, .gnu_debugdata, .dynsym and separate
 * debug files (build-id directories, .gnu_debuglink), kept on disk by file identity, mapped when
 * opened again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/strbuf.h"
#include "elf/elf_file.h"

struct symbol {
	const char *name; /* as in the file (mangled), or NAME@plt; valid as long as the table */
	uint64_t vaddr;   /* of the symbol's first byte */
	uint64_t size;    /* where the file gives none, up to the next symbol; never 0 */
	/* That next symbol is of a stripped file: a function without a name may begin before it. */
	bool end_is_guess;
};

struct symbol_table;

/*
 * Opens the symbols of `file`, from CACHE_DIRECTORY/<identity>.symbols when there (checked before
 * use), else built and written atomically. `cache_directory` may be NULL. `root` is prefixed to
 * absolute paths of debug files ("/proc/PID/root" for a container, "" for this one). A file without
 * any symbol gives an empty table. The table does not need `file` after that. `path`: the file's
 * inside `root`, by which a debug file is found by .gnu_debuglink, too; NULL: unknown.
 */
int symbol_table_open(struct symbol_table **ret_table, struct elf_file *file, const char *path,
	const char *root, const char *cache_directory, struct errmsg *err);
struct symbol_table *symbol_table_free(struct symbol_table *table);
void symbol_table_freep(struct symbol_table **table);
#define _cleanup_symbol_table_ _cleanup_(symbol_table_freep)

/*
 * The symbol that covers `vaddr`, the innermost where they nest; false when none does. A table may
 * be searched by several threads.
 */
bool symbol_table_find(const struct symbol_table *table, uint64_t vaddr, struct symbol *ret_symbol);
/* Bytes of memory that the table holds: 0 when it is mapped from the cache. */
uint64_t symbol_table_memory(const struct symbol_table *table);
