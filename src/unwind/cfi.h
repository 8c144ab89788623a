/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information, .eh_frame or .debug_frame: its entries, and the program of a CIE or FDE
 * run into unwind rows. Only what the unwinder follows is kept: CFA, frame pointer, second register
 * (arch/arch.h) and return address. DWARF 5 section 6.4; .eh_frame differences: Linux Standard Base
 * Core 5.0, section 10.6.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "unwind/rows.h"

struct cfi_section {
	const uint8_t *bytes;
	size_t length;
	uint64_t vaddr;
	bool is_debug_frame;     /* else .eh_frame */
	bool ends_at_terminator; /* the length is only an upper bound */
};

enum cfi_cfa_kind {
	CFI_CFA_UNDEFINED = 0,
	CFI_CFA_REGISTER,    /* register + offset */
	CFI_CFA_DEREF,       /* *(register + offset) + addend */
	CFI_CFA_PLT,         /* UNWIND_CFA_PLT */
	CFI_CFA_UNSUPPORTED, /* another expression */
};

struct cfi_cfa {
	enum cfi_cfa_kind kind;
	uint32_t reg; /* DWARF number */
	int64_t offset, addend;
};

enum cfi_saved_kind {
	CFI_SAVED_UNSPECIFIED = 0,
	CFI_SAVED_SAME,
	CFI_SAVED_UNDEFINED,
	CFI_SAVED_AT_CFA,      /* at CFA + offset */
	CFI_SAVED_IN_REGISTER, /* in `reg` */
	CFI_SAVED_AT_REGISTER, /* at `reg` + offset */
	CFI_SAVED_UNSUPPORTED, /* a value rule or another expression */
};

struct cfi_saved {
	enum cfi_saved_kind kind;
	uint32_t reg;
	int64_t offset;
};

/* The rules at one location. */
struct cfi_registers {
	struct cfi_cfa cfa;
	struct cfi_saved fp, second, sp, ra;
};

struct cfi_cie {
	size_t offset; /* of the entry in the section */
	bool parsed, valid;
	bool has_data; /* augmentation 'z': FDEs carry a length and data */
	bool is_signal_frame;
	uint8_t pointer_encoding;
	uint64_t code_alignment;
	int64_t data_alignment;
	struct cfi_registers initial;
};

#define CFI_CIE_CACHE 64

/* Reads one section. Zero-initialise, set `section`. About 12 KB: keep it off small stacks. */
struct cfi {
	struct cfi_section section;
	struct cfi_cie cies[CFI_CIE_CACHE];
};

/* One CIE or FDE. */
struct cfi_entry {
	size_t offset, next; /* of this entry and of the one after it */
	bool is_fde;
	/* FDEs only. `corrupt`: the CIE or the addresses cannot be read; nothing below is set. */
	bool corrupt;
	uint64_t begin, end;       /* code addresses */
	const struct cfi_cie *cie; /* valid until the next call on this cfi */
	struct cursor program;
};

/*
 * Reads the entry at `offset`; a terminator in the middle reads as an entry that is no FDE. Returns
 * 1, or 0 at the end, or -EINVAL when the length field is damaged, so that nothing can be read from
 * there on.
 */
int cfi_read_entry(struct cfi *cfi, size_t offset, struct cfi_entry *ret_entry);

/*
 * Runs the FDE's program and adds its rows from entry->begin up to `end`, at most entry->end.
 * Returns 0, -ENOMEM, or -EINVAL when the program is corrupt: rows may have been added. Rows with a
 * rule that the table cannot express become UNWIND_CFA_NONE and are counted in *unsupported_rows.
 */
int cfi_add_rows(const struct cfi_entry *entry, const struct cfi_section *section, uint64_t end,
	struct unwind_rows *rows, uint64_t *unsupported_rows);

/* Runs a CIE's program into `ret_initial`; `cie`'s alignments are set. Returns 0 or -EINVAL. */
int cfi_run_initial(const struct cfi_cie *cie, struct cursor program,
	const struct cfi_section *section, struct cfi_registers *ret_initial);

/*
 * The rule that these registers make; false when the table has no words for it (then the rule is
 * UNWIND_CFA_NONE).
 */
bool cfi_to_rule(const struct cfi_registers *registers, struct unwind_rule *ret_rule);

/*
 * Reads a pointer in a DW_EH_PE_ encoding. Returns 0, or -EINVAL for encodings that need a base
 * which linked files do not have (or that point indirectly). The cursor may have failed either way.
 */
int cfi_read_pointer(struct cursor *cursor, const struct cfi_section *section, uint8_t encoding,
	uint64_t *ret_value);
