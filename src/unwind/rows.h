/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a table while it is built: ascending addresses, equal neighbours merged, rules
 * shared. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/array.h"
#include "unwind/table.h"

/* Rows hold 48-bit addresses, rules are named by 16 bits. */
#define UNWIND_ROWS_MAX_VADDR (1ULL << 48)
#define UNWIND_ROWS_MAX_RULES 65536

struct unwind_rows {
	ARRAY_OF(uint64_t) packed; /* address << 16 | rule */
	ARRAY_OF(struct unwind_rule) rules;
	uint32_t *slots; /* open addressing: rule index + 1, 0 is free */
	size_t slot_count;
	uint16_t last_rule; /* of the latest lookup: neighbours often alternate */
	uint64_t
		rules_overflowed; /* rows whose rule found no number: they became UNWIND_CFA_NONE */
};

static inline uint64_t unwind_row_vaddr(uint64_t packed)
{
	return packed >> 16;
}

static inline uint16_t unwind_row_rule(uint64_t packed)
{
	return (uint16_t)packed;
}

/* At a function's first instruction. */
static inline struct unwind_rule unwind_entry_rule(void)
{
	return (struct unwind_rule){.cfa = UNWIND_CFA_SP,
		.cfa_offset = ARCH_ENTRY_CFA,
		.ra = ARCH_HAS_LINK_REGISTER ? UNWIND_RA_SECOND : UNWIND_RA_AT_CFA,
		.ra_offset = ARCH_RETURN_OFFSET};
}

/* Adds the fixed rules. `rows` is zeroed memory. Returns 0 or -ENOMEM; call done in either case. */
int unwind_rows_init(struct unwind_rows *rows);
void unwind_rows_done(struct unwind_rows *rows);
/*
 * Says that `rule` holds from `vaddr` on, which lies at or above every earlier row's address; a row
 * with the same address is replaced. Returns 0 or -ENOMEM.
 */
int unwind_rows_add(struct unwind_rows *rows, uint64_t vaddr, const struct unwind_rule *rule);
/* The same with an enum unwind_fixed_rule. */
int unwind_rows_add_fixed(struct unwind_rows *rows, uint64_t vaddr, enum unwind_fixed_rule rule);
