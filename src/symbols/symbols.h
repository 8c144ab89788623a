/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for addresses of one ELF file. Built from .symtab, .gnu_debugdata, .dynsym and separate debug files
 * (build-id directories, .gnu_debuglink), kept on disk by file identity, mapped when opened again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/strbuf.h"
#include "elf/elf_file.h"

struct symbol {
	const char *name; /* as in the file (mangled); valid as long as the table */
	uint64_t vaddr;   /* of the symbol's first byte */
	uint64_t size;    /* 0: unknown, reaches to the next symbol */
};

struct symbol_table;

/*
 * Opens the symbols of `file`, from CACHE_DIRECTORY/<identity>.symbols when there (checked before use), else built
 * and written atomically. `cache_directory` may be NULL. `root` is prefixed to absolute paths of
 * debug files ("/proc/PID/root" for a container, "" for this one). A file without any symbol gives an empty table.
 */
int symbol_table_open(struct symbol_table **ret_table, struct elf_file *file, const char *root,
	const char *cache_directory, struct errmsg *err);
struct symbol_table *symbol_table_free(struct symbol_table *table);
void symbol_table_freep(struct symbol_table **table);
#define _cleanup_symbol_table_ _cleanup_(symbol_table_freep)

/* The symbol that covers `vaddr`; false when none does. */
bool symbol_table_find(const struct symbol_table *table, uint64_t vaddr, struct symbol *ret_symbol);
size_t symbol_table_count(const struct symbol_table *table);

/*
 * Appends the demangled name (Itanium C++ with and without `_Z` version suffixes such as @@GLIBC_2.2.5, Rust legacy
 * and v0), or the name unchanged when it is not mangled.
 */
void symbol_demangle(const char *name, struct strbuf *ret_text);
