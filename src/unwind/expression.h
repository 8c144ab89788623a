/* SPDX-License-Identifier: Apache-2.0 */
/* The few DWARF expressions that compilers, linkers and assembly writers put into call frame
 * information. */
#pragma once

#include "unwind/cfi.h"

/*
 * A DW_CFA_def_cfa_expression: a register plus offset, what lies at a register plus offset (plus a
 * constant), or the linker's expression for PLT entries; anything else is CFI_CFA_UNSUPPORTED.
 */
struct cfi_cfa cfi_cfa_of_expression(struct cursor expression);
/* A DW_CFA_expression: the register's value lies at a register plus offset, else
 * CFI_SAVED_UNSUPPORTED. */
struct cfi_saved cfi_saved_of_expression(struct cursor expression);
