/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for code without call frame information, from its instructions. Math libraries keep their
 * hottest kernels in such assembly (OpenBLAS, MKL, video codecs), so without this nearly every
 * sample of them would lose its callers.
 *
 * A function's instructions are followed from its first one along all branches, keeping track of
 * the stack depth. A function is believed only when all paths agree and every return finds the
 * stack as it was; else its range keeps the rule for unknown code.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "elf/elf_file.h"
#include "unwind/rows.h"

struct inferrer;

/* Reads the function symbols of `file`, which must outlive the inferrer. Returns 0 or -ENOMEM. */
int inferrer_new(struct inferrer **ret_inferrer, struct elf_file *file);
struct inferrer *inferrer_free(struct inferrer *inferrer);

/*
 * Adds rows for the code from `begin` to `end`; `unknown` is the rule for what is not understood.
 * Adds the numbers of functions believed and refused. Returns 0, -ENOMEM, or elf_file_status().
 */
int inferrer_add_rows(struct inferrer *inferrer, struct unwind_rows *rows, uint64_t begin,
	uint64_t end, const struct unwind_rule *unknown);
uint64_t inferrer_believed(const struct inferrer *inferrer);
uint64_t inferrer_refused(const struct inferrer *inferrer);
