/* SPDX-License-Identifier: Apache-2.0 */
/* From what call frame information says to what a table row can say. */
#include "arch/arch.h"
#include ARCH_HEADER(files)
#include "unwind/cfi.h"

static bool fits_s16(int64_t value)
{
	return value >= INT16_MIN && value <= INT16_MAX;
}

static bool fits_s32(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

static bool set_cfa_register(const struct cfi_cfa *cfa, struct unwind_rule *rule)
{
	switch (cfa->reg) {
	case ARCH_DWARF_SP:
		rule->cfa = UNWIND_CFA_SP;
		break;
	case ARCH_DWARF_FP:
		rule->cfa = UNWIND_CFA_FP;
		break;
	case ARCH_DWARF_SECOND:
		rule->cfa = UNWIND_CFA_SECOND;
		break;
	default:
		rule->cfa = UNWIND_CFA_LEAF_REGISTER;
		rule->cfa_addend = (int16_t)cfa->reg;
		return cfa->reg < ARCH_REGISTERS;
	}
	return true;
}

static bool set_cfa(const struct cfi_cfa *cfa, struct unwind_rule *rule)
{
	if (!fits_s32(cfa->offset))
		return false;
	rule->cfa_offset = (int32_t)cfa->offset;
	switch (cfa->kind) {
	case CFI_CFA_REGISTER:
		return set_cfa_register(cfa, rule);
	case CFI_CFA_DEREF:
		rule->cfa = cfa->reg == ARCH_DWARF_SP ? UNWIND_CFA_SP_DEREF : UNWIND_CFA_FP_DEREF;
		rule->cfa_addend = (int16_t)cfa->addend;
		return (cfa->reg == ARCH_DWARF_SP || cfa->reg == ARCH_DWARF_FP) &&
		       fits_s16(cfa->addend);
	case CFI_CFA_PLT:
		rule->cfa = UNWIND_CFA_PLT;
		return true;
	default:
		return false;
	}
}

/*
 * `register + offset` is the same place as `CFA + another offset` when the CFA is given by that
 * register.
 */
static struct cfi_saved relative_to_cfa(
	const struct cfi_registers *registers, struct cfi_saved saved)
{
	const struct cfi_cfa *cfa = &registers->cfa;

	if (saved.kind != CFI_SAVED_AT_REGISTER || cfa->kind != CFI_CFA_REGISTER ||
		cfa->reg != saved.reg ||
		__builtin_sub_overflow(saved.offset, cfa->offset, &saved.offset))
		return saved;
	saved.kind = CFI_SAVED_AT_CFA;
	return saved;
}

static bool set_return_address(const struct cfi_registers *registers, struct unwind_rule *rule)
{
	struct cfi_saved ra = relative_to_cfa(registers, registers->ra);

	switch (ra.kind) {
	case CFI_SAVED_AT_CFA:
		rule->ra = UNWIND_RA_AT_CFA;
		rule->ra_offset = (int16_t)ra.offset;
		return fits_s16(ra.offset);
	case CFI_SAVED_IN_REGISTER:
		rule->ra = UNWIND_RA_LEAF_REGISTER;
		rule->ra_offset = (int16_t)ra.reg;
		return ra.reg < ARCH_REGISTERS;
	case CFI_SAVED_UNSPECIFIED:
	case CFI_SAVED_SAME:
		rule->ra = UNWIND_RA_SECOND;
		return ARCH_HAS_LINK_REGISTER;
	default:
		return false;
	}
}

/* What cannot be expressed is only lost: the frame's caller needs it seldom. */
static void set_saved(const struct cfi_registers *registers, struct cfi_saved saved,
	uint8_t *ret_kind, int16_t *ret_offset)
{
	saved = relative_to_cfa(registers, saved);
	*ret_kind = UNWIND_SAVED_LOST;
	switch (saved.kind) {
	case CFI_SAVED_UNSPECIFIED: /* no rule means unchanged: compilers and assembly rely on it */
	case CFI_SAVED_SAME:
		*ret_kind = UNWIND_SAVED_SAME;
		return;
	case CFI_SAVED_AT_CFA:
		if (!fits_s16(saved.offset))
			return;
		*ret_kind = UNWIND_SAVED_AT_CFA;
		*ret_offset = (int16_t)saved.offset;
		return;
	case CFI_SAVED_AT_REGISTER:
		if (saved.reg != ARCH_DWARF_FP || !fits_s16(saved.offset))
			return;
		*ret_kind = UNWIND_SAVED_AT_FP;
		*ret_offset = (int16_t)saved.offset;
		return;
	default:
		return;
	}
}

/* A call saves nothing above the CFA: see ARCH_RESOLVER_LEAVES_OUT. */
static void add_what_is_left_out(struct unwind_rule *rule)
{
	const int16_t bytes = ARCH_RESOLVER_LEAVES_OUT;

	if (!bytes || rule->cfa != UNWIND_CFA_SP || rule->cfa_offset > INT16_MAX ||
		rule->ra != UNWIND_RA_AT_CFA || rule->ra_offset != bytes - 8)
		return;
	rule->cfa_offset += bytes;
	rule->ra_offset -= bytes;
	if (rule->fp == UNWIND_SAVED_AT_CFA)
		rule->fp_offset -= bytes;
	if (rule->second == UNWIND_SAVED_AT_CFA)
		rule->second_offset -= bytes;
}

bool cfi_to_rule(const struct cfi_registers *registers, struct unwind_rule *ret_rule)
{
	struct unwind_rule rule = {0};

	*ret_rule = (struct unwind_rule){.cfa = UNWIND_CFA_NONE};
	if (registers->ra.kind == CFI_SAVED_UNDEFINED) {
		ret_rule->cfa = UNWIND_CFA_END;
		return true;
	}
	/* The step takes the CFA for the caller's stack pointer: another rule for that (longjmp)
	 * cannot be expressed. */
	if (registers->sp.kind != CFI_SAVED_UNSPECIFIED && registers->sp.kind != CFI_SAVED_SAME)
		return false;
	if (!set_cfa(&registers->cfa, &rule) || !set_return_address(registers, &rule))
		return false;
	set_saved(registers, registers->fp, &rule.fp, &rule.fp_offset);
	set_saved(registers, registers->second, &rule.second, &rule.second_offset);
	add_what_is_left_out(&rule);
	*ret_rule = rule;
	return true;
}
