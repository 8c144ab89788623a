/* SPDX-License-Identifier: Apache-2.0 */
/* Which code of a file something is known about: one range per FDE, and the PLT sections that have
 * no FDE. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "elf/elf_file.h"
#include "unwind/cfi.h"

enum unwind_range_kind {
	UNWIND_RANGE_PLT_HEADER, /* of .plt, see ARCH_PLT_HEADER_CFA */
	UNWIND_RANGE_PLT_PUSH,   /* entries that push one word */
	UNWIND_RANGE_PLT_JUMP,   /* entries that only jump */
	UNWIND_RANGE_CFI,
};

struct unwind_range {
	uint64_t begin, end;
	size_t cfi_offset;  /* UNWIND_RANGE_CFI: the FDE in the section */
	uint16_t pushed_at; /* UNWIND_RANGE_PLT_PUSH: from this byte of an entry on the word is
			       pushed */
	enum unwind_range_kind kind;
};

struct unwind_ranges {
	ARRAY_OF(struct unwind_range) items;
	uint64_t fde_count, corrupt_fdes;
};

/* Adds every FDE of the section, with a good address range. Returns 0 or -ENOMEM. */
int unwind_ranges_add_cfi(struct unwind_ranges *ranges, struct cfi *cfi);
/* Adds the PLT sections of `file` that no range covers yet: lld and mold give them no FDE. Returns
 * 0 or -ENOMEM. */
int unwind_ranges_add_plt(struct unwind_ranges *ranges, struct elf_file *file);
/* Sorts by address and cuts overlaps: each range ends at the start of the next at the latest; some
 * end empty. */
void unwind_ranges_sort(struct unwind_ranges *ranges);
void unwind_ranges_done(struct unwind_ranges *ranges);
