/* SPDX-License-Identifier: Apache-2.0 */
/* From rows to the words of unwind/table.h. */
#pragma once

#include <stdint.h>

#include "unwind/build.h"
#include "unwind/rows.h"

/* A table spans at most this many pages (16 GB of addresses): a damaged file must not ask for more.
 */
#define UNWIND_MAX_PAGES (1U << 18)

/*
 * Lays the rows out for the addresses `begin` to `end`, at most UNWIND_MAX_PAGES pages. Returns 0,
 * -ENOMEM, or -EFBIG when the table would have more words than its header can count.
 */
int unwind_table_write(struct unwind_table *ret_table, const struct unwind_rows *rows,
	uint64_t begin, uint64_t end, uint64_t identity);

/* What the header's checksum must be: a hash of every word, with 0 in the checksum's place. */
uint64_t unwind_table_checksum(const uint64_t *words, uint64_t word_count);
