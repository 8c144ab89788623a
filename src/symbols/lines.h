/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines and inlined functions of an address, by libdw, opened only for addresses that are
 * shown. libdw maps the file and takes what memory and time it asks for: foreign files are read in
 * a child process (collect/pipeline/line_process.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"

struct source_line {
	const char *function; /* as in DWARF, linkage name where present; NULL: as the symbol */
	const char *file;     /* NULL: unknown */
	uint32_t line;        /* 0: unknown */
};

struct line_table;

/*
 * Opens the DWARF of the file at `path`, or of its separate debug file (build-id directory,
 * .gnu_debuglink, under `root`). Returns -ENOENT with a sentence when neither has .debug_line.
 */
int line_table_open(
	struct line_table **ret_table, const char *path, const char *root, struct errmsg *err);
/* Why the debug information cannot be used, once that was met; NULL when nothing is amiss. */
const char *line_table_failure(const struct line_table *table);
/* What the compressed sections of the file say that they hold, all together. */
uint64_t line_table_unpacked_bytes(const struct line_table *table);
/* True when the file is this user's or root's, of this system: it may lead to further files. */
bool line_table_is_trusted(const struct line_table *table);
struct line_table *line_table_free(struct line_table *table);

/*
 * The chain at `vaddr`, innermost inlined function first, at most `capacity` entries; returns their
 * number, 0 when unknown. Strings are valid as long as the table. Entry i's line is where i runs:
 * for i > 0 the call site of i - 1.
 */
size_t line_table_find(
	struct line_table *table, uint64_t vaddr, struct source_line *ret_lines, size_t capacity);
