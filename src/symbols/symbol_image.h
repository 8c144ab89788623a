/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbols of one file as one block of bytes, the same in memory and in the cache: header,
 * sorted starts, entries, names. Any bytes can be given to symbol_image_view(); only whole images
 * with unharmed tables pass, and names are checked when they are looked up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/elf_symbols.h"
#include "symbols/symbols.h"

/* What an image was made of. */
struct symbol_image_key {
	uint64_t identity;          /* elf_file_identity() */
	uint64_t own_fingerprint;   /* of the tables that strip removes; 0: the file has none */
	uint64_t debug_fingerprint; /* debug_file_fingerprint() */
};

struct symbol_image_header;
struct symbol_image_entry;

struct symbol_image {
	const struct symbol_image_header *header;
	const uint64_t *starts;
	const struct symbol_image_entry *entries;
	const char *names;
};

/*
 * Makes an image of the candidates, which it sorts and thins out: one name per start, and no label
 * inside a function. *ret_bytes is to be freed. Returns 0, -ENOMEM, -EFBIG for more names than a
 * cache should hold, or the elf_file_status() of the candidates' file.
 */
int symbol_image_build(void **ret_bytes, size_t *ret_length, struct symbol_candidates *candidates,
	const struct symbol_image_key *key);
/* Sorts by start, the best name of each start first. */
void symbol_candidates_sort(struct symbol_candidates *candidates);

/*
 * Points into `bytes`, which are aligned to 8 and outlive the image. Returns 0, or -EBADMSG for
 * anything but a whole image of this version.
 */
int symbol_image_view(struct symbol_image *ret_image, const void *bytes, size_t length);
/*
 * True when the image serves a file with this key: the same file, and each source of names that the
 * key shows was there when the image was made. One made with more, a debug file that this place
 * lacks, serves too.
 */
bool symbol_image_serves(const struct symbol_image *image, const struct symbol_image_key *key);

/* 1 and the symbol; 0 when none covers `vaddr`; -EBADMSG when its name is damaged. */
int symbol_image_find(const struct symbol_image *image, uint64_t vaddr, struct symbol *ret_symbol);
