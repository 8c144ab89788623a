/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of an ELF file: of a descriptor, read with pread() into memory of our own, or of an
 * image in memory. A mapping would fault when the file's owner cuts it. What is kept is bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/array.h"

/* Bytes of one range of the file, on the heap. */
struct elf_kept {
	uint64_t offset, length;
	uint8_t *bytes;
	bool inflated; /* what the section there holds, unpacked */
};

struct elf_source {
	int fd;                /* -1: memory */
	const uint8_t *memory; /* not owned */
	uint64_t length;
	struct stat opened; /* as it was when it was opened */
	ARRAY_OF(struct elf_kept) kept;
	uint64_t kept_bytes;
	struct elf_kept window;   /* what elf_source_window() read last */
	uint64_t window_capacity; /* of its bytes */
	bool cut, too_large, no_memory;
};

/* Keeps a duplicate of the descriptor. Returns 0 or a negative errno: EISDIR, EINVAL for what is no
 * regular file. */
int elf_source_open(struct elf_source *source, int fd);
void elf_source_open_memory(struct elf_source *source, const void *bytes, size_t length);
void elf_source_done(struct elf_source *source);

/* True when all `length` bytes at `offset` are there, and copied. */
bool elf_source_read(
	const struct elf_source *source, uint64_t offset, void *ret_bytes, size_t length);
/*
 * Bytes that stay until done; NULL when they are not all there or too many, which the source then
 * remembers, or when memory is short.
 */
const uint8_t *elf_source_keep(struct elf_source *source, uint64_t offset, uint64_t length);
/* What elf_source_keep_inflated() was given for the section at `offset`; NULL: nothing yet. */
const struct elf_kept *elf_source_find_inflated(const struct elf_source *source, uint64_t offset);
/* True when so many more bytes may be kept; else the source remembers that they were too many. */
bool elf_source_has_room(struct elf_source *source, uint64_t length);
/* Takes the unpacked bytes of the section at `offset`; false, and they are freed, without memory.
 */
bool elf_source_keep_inflated(
	struct elf_source *source, uint64_t offset, uint8_t *take_bytes, uint64_t length);
/*
 * Bytes that stay until the next call: up to `length`, less at the end of the file. NULL when there
 * are none.
 */
const uint8_t *elf_source_window(
	struct elf_source *source, uint64_t offset, uint64_t length, uint64_t *ret_length);

/* False when the file is another than it was when it was opened. */
bool elf_source_unchanged(const struct elf_source *source);
