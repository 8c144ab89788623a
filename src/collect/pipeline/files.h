/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that stacks run through: opened when first mapped, while the process still lives, and
 * given an unwind table and symbols by a low-priority thread when a sample first needs them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "elf/elf_file.h"
#include "sources/process/address_space.h"
#include "sources/unwinder.h"
#include "symbols/symbols.h"

struct file_store;

struct file_store_account {
	uint64_t tables_built, tables_from_cache, table_build_ns;
	uint64_t cpu_ns;         /* of the thread that makes tables and symbols, all in all */
	uint64_t tables_refused; /* by the sampler: such stacks are unwound by the collector */
	uint64_t unreadable;     /* files that samples needed and that could not be opened */
	struct errmsg unreadable_example; /* why the first could not */
	uint64_t left_out;                /* symbols and tables of files that took too much */
	struct errmsg left_out_example;
};

/* The unwinder gets each table; a copy of it is kept. NULL: there is none. Starts the thread. */
int file_store_new(
	struct file_store **ret_store, const struct source_unwinder *unwinder, struct errmsg *err);
/* Ends the thread, which gives up the file that it works on. */
struct file_store *file_store_free(struct file_store *store);

/* Opens the file and reads its headers. Call once per mapped_file, in order of its index. Returns 0
 * or -ENOMEM. */
int file_store_add(struct file_store *store, const struct mapped_file *mapped);
/*
 * Another process maps it: tries again to open a file that could not be read before. Returns 0 or
 * -ENOMEM.
 */
int file_store_see(struct file_store *store, const struct mapped_file *mapped);

/*
 * The mapping's bias: address - bias = virtual address in the file. False when the file is no
 * readable ELF file: frame pointers are all there is.
 */
bool file_store_bias(
	const struct file_store *store, const struct mapping *mapping, uint64_t *ret_bias);

/* What the store has of a file, by mapped_file.index, asked for the first time: it is put into the
 * thread's queue. */
enum file_readiness {
	FILE_PENDING, /* on its way */
	FILE_READY,
	FILE_ABSENT, /* will not come: not ELF, unreadable */
};

enum file_readiness file_store_table(struct file_store *store, uint32_t index,
	const uint64_t **ret_words, uint64_t *ret_word_count);
enum file_readiness file_store_symbols(
	struct file_store *store, uint32_t index, const struct symbol_table **ret_symbols);

/* Where the function at `vaddr` begins, for files without symbols; false when nothing says it. */
bool file_store_function_start(
	struct file_store *store, uint32_t index, uint64_t vaddr, uint64_t *ret_start);

/* Opens the file for the caller. Returns 0 or a negative errno: not ELF, unreadable. */
int file_store_open_elf(const struct file_store *store, uint32_t index, struct elf_file **ret_elf);

/* Length 0 when the file has none. Valid as long as the store. */
const struct build_id *file_store_build_id(const struct file_store *store, uint32_t index);
/*
 * A path through which the file can be opened again for its debug information, and the root below
 * which that lies; NULL when it cannot. Valid until the next call.
 */
const char *file_store_path(struct file_store *store, uint32_t index, const char **ret_root);

/* Readable when something became ready; cleared by file_store_acknowledge(). */
void file_store_announce(struct file_store *store); /* from any thread */
int file_store_descriptor(const struct file_store *store);
void file_store_acknowledge(struct file_store *store);
void file_store_account(struct file_store *store, struct file_store_account *ret_account);
