/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a table and one step with them over a made-up memory, for tests. */
#pragma once

#include <stdint.h>

#include "base/map.h"
#include "unwind/build.h"

/* Every address holds a word: a good hash of it, so that no two are mistaken for each other. */
static inline int made_up_word(uint64_t address, __u64 *ret_value)
{
	*ret_value = hash_u64(address) | 1;
	return 0;
}

static inline int table_word(const struct unwind_table *table, uint64_t index, __u64 *ret_word)
{
	if (index >= table->word_count)
		return -1;
	*ret_word = table->words[index];
	return 0;
}

#define UNWIND_READ_U64(context, address, value) made_up_word(address, value)
#define UNWIND_TABLE_WORD(table, index, value)   table_word(table, index, value)
#include "unwind/step.h"

static inline struct unwind_rule table_rule(const struct unwind_table *table, uint64_t vaddr)
{
	struct unwind_rule rule;

	unwind_table_find((void *)table, vaddr, &rule);
	return rule;
}
