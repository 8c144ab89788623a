/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of processors as the kernel writes them: "0-3,8". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

#define CPU_NUMBERS 65536 /* captures number processors in 16 bits */

struct cpu_set {
	uint64_t words[CPU_NUMBERS / 64];
};

/*
 * The next processors of a list, from the first to the last; what follows them is then at `*at`.
 * False at the end, and where the text is no list.
 */
bool cpu_list_next(const char **at, unsigned *ret_first, unsigned *ret_last);
/* All of it, without doubt: at least one processor, in order, none beyond CPU_NUMBERS. */
bool cpu_list_is_valid(const char *text);

/* Those of a list; what is not in order, or not a list, ends it. */
void cpu_set_parse(struct cpu_set *ret_set, const char *text);
void cpu_set_add(struct cpu_set *set, unsigned cpu);
bool cpu_set_has(const struct cpu_set *set, unsigned cpu);
/* Appends the list. */
void cpu_set_format(const struct cpu_set *set, struct strbuf *out);
