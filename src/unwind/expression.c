/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/expression.h"

#include <dwarf.h>

#define LITERALS 16

/* Reads `register + offset`, with constants added. */
static bool read_based(struct cursor *cursor, uint32_t *ret_register, int64_t *ret_offset)
{
	uint8_t operation = cursor_u8(cursor);

	if (operation < DW_OP_breg0 || operation > DW_OP_breg31)
		return false;
	*ret_register = operation - DW_OP_breg0;
	*ret_offset = cursor_sleb(cursor);
	return !cursor->failed;
}

/* Reads any number of added constants. */
static int64_t read_addend(struct cursor *cursor)
{
	uint64_t addend = 0;

	while (cursor_left(cursor) && *cursor->at == DW_OP_plus_uconst) {
		cursor->at++;
		addend += cursor_uleb(cursor);
	}
	return (int64_t)addend;
}

/*
 * breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus: what ld writes for the PLT, where the
 * entry's push moves the stack pointer at byte N of 16. x86-64's: 7 is rsp and 16 the return
 * address.
 */
static bool read_plt(struct cursor cursor, int64_t *ret_threshold)
{
	static const uint8_t before[] = {DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and};
	static const uint8_t after[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
	uint8_t literal;

	if (cursor_left(&cursor) != sizeof(before) + 1 + sizeof(after) ||
		memcmp(cursor.at, before, sizeof(before)) != 0 ||
		memcmp(cursor.at + sizeof(before) + 1, after, sizeof(after)) != 0)
		return false;
	literal = (uint8_t)(cursor.at[sizeof(before)] - DW_OP_lit0);
	*ret_threshold = literal;
	return literal < LITERALS;
}

struct cfi_cfa cfi_cfa_of_expression(struct cursor expression)
{
	struct cfi_cfa cfa = {.kind = CFI_CFA_PLT}, unsupported = {.kind = CFI_CFA_UNSUPPORTED};

	if (read_plt(expression, &cfa.offset))
		return cfa;
	if (!read_based(&expression, &cfa.reg, &cfa.offset))
		return unsupported;
	cfa.offset = (int64_t)((uint64_t)cfa.offset + (uint64_t)read_addend(&expression));
	cfa.kind = CFI_CFA_REGISTER;
	if (cursor_left(&expression) && *expression.at == DW_OP_deref) {
		expression.at++;
		cfa.kind = CFI_CFA_DEREF;
		cfa.addend = read_addend(&expression);
	}
	return expression.failed || cursor_left(&expression) ? unsupported : cfa;
}

struct cfi_saved cfi_saved_of_expression(struct cursor expression)
{
	struct cfi_saved saved = {.kind = CFI_SAVED_AT_REGISTER};

	if (!read_based(&expression, &saved.reg, &saved.offset))
		return (struct cfi_saved){.kind = CFI_SAVED_UNSUPPORTED};
	saved.offset = (int64_t)((uint64_t)saved.offset + (uint64_t)read_addend(&expression));
	if (expression.failed || cursor_left(&expression))
		return (struct cfi_saved){.kind = CFI_SAVED_UNSUPPORTED};
	return saved;
}
