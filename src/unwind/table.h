/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind table of one ELF file, compiled from .eh_frame: one array of 64-bit words, the same
 * bytes in the cache file, in user space and in the BPF map (an ARRAY of u64, because ARRAY
 * elements are padded to 8 bytes). Compiled into the BPF programs too.
 *
 *   header   UNWIND_HEADER_WORDS words, struct unwind_table_header
 *   pages    one word per 64 KB of virtual address:
 *            first row (low 32 bits), row count (high 32 bits)
 *   rules    UNWIND_RULE_WORDS words each, struct unwind_rule;
 *            the first ones are UNWIND_FIXED_RULES
 *   rows     two per word: {u16 low bits of the address, u16 rule index},
 *            sorted by address
 *
 * Addresses are the file's own virtual addresses (p_vaddr space). A row is valid up to the next
 * row. When the first row of a page lies above the address, the last row of an earlier page (index
 * - 1) counts.
 */
#pragma once

#include <linux/types.h>

#define UNWIND_TABLE_MAGIC   0x31776e7565646e73ULL /* "sndeunw1" */
#define UNWIND_TABLE_VERSION 7
#define UNWIND_PAGE_SHIFT    16
#define UNWIND_HEADER_WORDS  8
#define UNWIND_RULE_WORDS    2
/* Rows in a page are found in at most this many steps: a page cannot hold more than 2^16 rows. */
#define UNWIND_SEARCH_STEPS 17

struct unwind_table_header {
	__u64 magic;
	__u32 version;
	__u32 word_count; /* of the whole table, this header included */
	__u32 page_base;  /* virtual address >> UNWIND_PAGE_SHIFT of the first page */
	__u32 page_count;
	__u32 pages_at; /* word index of the first page */
	__u32 rules_at;
	__u32 rows_at;
	__u32 row_count;
	__u32 rule_count;
	__u32 flags;
	__u64 checksum; /* hash_bytes() of every word, this one taken as 0 */
	__u64 identity; /* elf_file_identity() of the file it was compiled from */
};

_Static_assert(sizeof(struct unwind_table_header) == UNWIND_HEADER_WORDS * 8, "table format");

/* How to find the canonical frame address (CFA: the stack pointer before the call). */
enum unwind_cfa {
	UNWIND_CFA_NONE = 0,      /* no rule: gap, or an expression we do not evaluate */
	UNWIND_CFA_END,           /* the outermost frame (undefined return address) */
	UNWIND_CFA_SP,            /* stack pointer + cfa_offset */
	UNWIND_CFA_FP,            /* frame pointer + cfa_offset */
	UNWIND_CFA_SECOND,        /* second register (arch/arch.h) + cfa_offset */
	UNWIND_CFA_FP_DEREF,      /* *(frame pointer + cfa_offset) + cfa_addend */
	UNWIND_CFA_SP_DEREF,      /* *(stack pointer + cfa_offset) + cfa_addend */
	UNWIND_CFA_LEAF_REGISTER, /* leaf[cfa_addend] + cfa_offset, innermost frame only */
	UNWIND_CFA_PLT,           /* arch_plt_cfa() */
	UNWIND_CFA_SIGNAL,        /* everything comes from the ucontext on the stack */
	UNWIND_CFA_FRAME_POINTER, /* code without table that keeps a frame pointer */
	UNWIND_CFA_OTHER_STACK, /* the stack pointer was loaded with another stack's: the caller is
				   not on this one */
};

/*
 * cfa_offset of UNWIND_CFA_FRAME_POINTER: the code works on several stacks, as Go's does, so that a
 * caller's frame may lie anywhere.
 */
#define UNWIND_FRAMES_ON_STACKS 1

enum unwind_return_address {
	UNWIND_RA_AT_CFA = 0,    /* at CFA + ra_offset (-8 nearly always) */
	UNWIND_RA_LEAF_REGISTER, /* in leaf[ra_offset], innermost frame only (vfork) */
	UNWIND_RA_SECOND,        /* in the link register: ARCH_HAS_LINK_REGISTER */
};

/* Where the caller's frame pointer or second register is. */
enum unwind_saved {
	UNWIND_SAVED_SAME = 0, /* unchanged in this function; also what "no rule" means */
	UNWIND_SAVED_AT_CFA,   /* at CFA + offset */
	UNWIND_SAVED_AT_FP,    /* at this frame's frame pointer + offset (realigned stacks) */
	UNWIND_SAVED_LOST,     /* undefined or not expressible: a frame that needs it stops */
};

struct unwind_rule {
	__u8 cfa; /* enum unwind_cfa */
	__u8 ra;  /* enum unwind_return_address */
	__u8 fp;  /* enum unwind_saved */
	__u8 second;
	__s32 cfa_offset;
	__s16 cfa_addend;
	__s16 ra_offset;
	__s16 fp_offset;
	__s16 second_offset;
};

_Static_assert(sizeof(struct unwind_rule) == UNWIND_RULE_WORDS * 8, "table format");

/* The frame pointer points to the caller's, and the return address is behind it. */
#define UNWIND_FRAME_POINTER_RULE                                                                  \
	{                                                                                          \
		.cfa = UNWIND_CFA_FRAME_POINTER, .fp = UNWIND_SAVED_AT_CFA, .fp_offset = -16,      \
		.ra_offset = -8                                                                    \
	}

/* Every table starts with these rules. */
enum unwind_fixed_rule {
	UNWIND_RULE_NONE = 0, /* {.cfa = UNWIND_CFA_NONE} */
	UNWIND_RULE_END = 1,  /* {.cfa = UNWIND_CFA_END} */
	UNWIND_FIXED_RULES = 2,
};

struct unwind_row {
	__u16 address_low;
	__u16 rule;
};
