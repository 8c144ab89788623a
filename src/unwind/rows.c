/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/rows.h"

#include <string.h>

#include "base/map.h"

#define FIRST_SLOT_COUNT 256

static size_t rule_slot(const struct unwind_rows *rows, const struct unwind_rule *rule)
{
	size_t mask = rows->slot_count - 1, slot = hash_bytes(rule, sizeof(*rule), 0) & mask;

	while (rows->slots[slot] &&
		memcmp(&rows->rules.items[rows->slots[slot] - 1], rule, sizeof(*rule)) != 0)
		slot = (slot + 1) & mask;
	return slot;
}

/* Keeps the slots at most half full. */
static int reserve_slot(struct unwind_rows *rows)
{
	size_t slot_count = rows->slot_count ? rows->slot_count * 2 : FIRST_SLOT_COUNT;
	uint32_t *slots;

	if ((rows->rules.count + 1) * 2 <= rows->slot_count)
		return 0;
	slots = calloc(slot_count, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(rows->slots);
	rows->slots = slots;
	rows->slot_count = slot_count;
	for (size_t i = 0; i < rows->rules.count; i++)
		slots[rule_slot(rows, &rows->rules.items[i])] = (uint32_t)i + 1;
	return 0;
}

static int find_or_add_rule(
	struct unwind_rows *rows, const struct unwind_rule *rule, uint16_t *ret_index)
{
	size_t slot;

	if (reserve_slot(rows) < 0)
		return -ENOMEM;
	slot = rule_slot(rows, rule);
	if (rows->slots[slot]) {
		*ret_index = (uint16_t)(rows->slots[slot] - 1);
		return 0;
	}
	if (rows->rules.count == UNWIND_ROWS_MAX_RULES) {
		rows->rules_overflowed++;
		*ret_index = UNWIND_RULE_NONE;
		return 0;
	}
	if (array_append(&rows->rules, *rule) < 0)
		return -ENOMEM;
	rows->slots[slot] = (uint32_t)rows->rules.count;
	*ret_index = (uint16_t)(rows->rules.count - 1);
	return 0;
}

int unwind_rows_init(struct unwind_rows *rows)
{
	static const struct unwind_rule fixed[UNWIND_FIXED_RULES] = {
		[UNWIND_RULE_NONE] = {.cfa = UNWIND_CFA_NONE},
		[UNWIND_RULE_END] = {.cfa = UNWIND_CFA_END},
	};
	uint16_t index;

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (find_or_add_rule(rows, &fixed[i], &index) < 0)
			return -ENOMEM;
	return 0;
}

void unwind_rows_done(struct unwind_rows *rows)
{
	array_done(&rows->packed);
	array_done(&rows->rules);
	free(rows->slots);
	*rows = (struct unwind_rows){0};
}

static int add_row(struct unwind_rows *rows, uint64_t vaddr, uint16_t rule)
{
	size_t count = rows->packed.count;

	if (count && unwind_row_vaddr(rows->packed.items[count - 1]) == vaddr)
		count = --rows->packed.count;
	if (count && unwind_row_rule(rows->packed.items[count - 1]) == rule)
		return 0;
	return array_append(&rows->packed, vaddr << 16 | rule);
}

int unwind_rows_add(struct unwind_rows *rows, uint64_t vaddr, const struct unwind_rule *rule)
{
	if (memcmp(&rows->rules.items[rows->last_rule], rule, sizeof(*rule)) != 0 &&
		find_or_add_rule(rows, rule, &rows->last_rule) < 0)
		return -ENOMEM;
	return add_row(rows, vaddr, rows->last_rule);
}

int unwind_rows_add_fixed(struct unwind_rows *rows, uint64_t vaddr, enum unwind_fixed_rule rule)
{
	return add_row(rows, vaddr, (uint16_t)rule);
}
