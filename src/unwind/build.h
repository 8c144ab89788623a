/* SPDX-License-Identifier: Apache-2.0 */
/* Making unwind tables: ELF file → rows, and the on-disk cache of them by build-id. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "elf/elf_file.h"
#include "unwind/table.h"

/* A table in memory: built, or mapped from the cache. */
struct unwind_table {
	const uint64_t *words; /* header.word_count words */
	uint64_t word_count;
	void *mapping; /* munmap'ed at done when not NULL, else words is free'd */
	size_t mapping_length;
};

struct unwind_build_stats {
	uint64_t fde_count, row_count, rule_count;
	uint64_t unsupported_rows; /* rows that became UNWIND_CFA_NONE for an unsupported expression
				    */
	uint64_t corrupt_fdes;     /* skipped, their range became UNWIND_CFA_NONE */
	/* Functions without call frame information: understood from their instructions, or not. */
	uint64_t inferred_functions, refused_functions;
	bool from_cache;
};

/*
 * Compiles .eh_frame (else PT_GNU_EH_FRAME, else .debug_frame). Code without any is
 * understood from its instructions as far as possible (infer.h); for the rest of it frame pointers
 * are assumed in files without any call frame information and in Go programs. Corrupt input never
 * crashes; what cannot be understood becomes UNWIND_CFA_NONE and is counted. `ret_stats` may be
 * NULL. Returns 0, or a negative errno with a message: -EINVAL for another processor's file, else
 * elf_file_status().
 */
int unwind_table_build(struct unwind_table *ret_table, struct elf_file *file,
	struct unwind_build_stats *ret_stats, struct errmsg *err);

/*
 * The same through the cache: CACHE_DIRECTORY/NAME.unwind, see elf_file_cache_name(), is checked
 * (magic, version, sizes, checksum; every index is bounds-checked when used) and mapped, or built
 * and written atomically. `cache_directory` may be NULL: no cache. A cache that cannot be written
 * is no error.
 */
int unwind_table_open(struct unwind_table *ret_table, struct elf_file *file,
	const char *cache_directory, struct unwind_build_stats *ret_stats, struct errmsg *err);
/* Only from the cache; -ENOENT when not there. */
int unwind_table_open_cached(
	struct unwind_table *ret_table, const struct elf_file *file, const char *cache_directory);
void unwind_table_done(struct unwind_table *table);

/* True when magic, version, sizes and section bounds of the table hold. Tables from disk pass
 * through it. */
bool unwind_table_is_valid(const uint64_t *words, uint64_t word_count);
