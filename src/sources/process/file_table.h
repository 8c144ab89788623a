/* SPDX-License-Identifier: Apache-2.0 */
/* The mapped files of an address_spaces: who is the same file, and what kind of mapping it makes.
 */
#pragma once

#include "base/map.h"
#include "sources/process/address_space.h"

/* Zero-initialise. */
struct file_table {
	ARRAY_OF(struct mapped_file *) files; /* by index */
	struct intern identities;
	ARRAY_OF(uint32_t) file_of_identity; /* identity id → index */
};

/* What one source reported about a mapping's file. */
struct file_sighting {
	const char *name; /* path with or without " (deleted)", "[vdso]", "//anon", "" … */
	uint64_t device, inode, inode_generation; /* 0: unknown */
	const struct build_id *build_id;          /* length 0: unknown */
	uint32_t pid;
	uint64_t start, end;
};

/*
 * Finds or adds the file. Returns 1 when it is new, 0 when known, -ENOMEM. Different names of one
 * kind of special mapping
 * ("" and "//anon", "[anon:x]") become one.
 */
int file_table_resolve(
	struct file_table *table, const struct file_sighting *sighting, uint32_t *ret_index);
void file_table_done(struct file_table *table);
