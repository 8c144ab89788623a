/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/stack.h"

#include <string.h>

#include "base/macros.h"

struct bounded_table {
	const uint64_t *words;
	uint64_t word_count;
};

static inline int target_read(
	const struct unwind_target *target, uint64_t address, __u64 *ret_value)
{
	uint64_t value;

	if (target->read_u64(target->context, address, &value) < 0)
		return -1;
	*ret_value = value;
	return 0;
}

static inline int table_read(const struct bounded_table *table, uint64_t index, __u64 *ret_word)
{
	if (index >= table->word_count)
		return -1;
	*ret_word = table->words[index];
	return 0;
}

#define UNWIND_READ_U64(context, address, value) target_read(context, address, value)
#define UNWIND_TABLE_WORD(table, index, value)   table_read(table, index, value)
#include "unwind/step.h"

static const struct unwind_rule jit_rule = UNWIND_FRAME_POINTER_RULE;

/* The rule for a frame's lookup address. Returns UNWIND_CONTINUE or a stop. */
static int find_rule(
	const struct unwind_target *target, uint64_t address, struct unwind_rule *ret_rule)
{
	struct unwind_location location = {0};
	struct bounded_table table;

	if (!target->locate(target->context, address, &location))
		return UNWIND_STOPPED(WIRE_STOP_NO_MAPPING);
	if (location.frame_pointer) {
		*ret_rule = jit_rule;
		return UNWIND_CONTINUE;
	}
	if (!location.table)
		return UNWIND_STOPPED(WIRE_STOP_NO_TABLE);
	table = (struct bounded_table){location.table, location.table_word_count};
	unwind_table_find(&table, address - location.bias, ret_rule);
	return UNWIND_CONTINUE;
}

static struct unwind_state first_state(const struct wire_stack_copy *registers)
{
	struct unwind_state state = {.pc = registers->pc,
		.sp = registers->sp,
		.fp = {.value = registers->fp},
		.second = {.value = registers->second},
		.exact_pc = 1,
		.is_leaf = 1};

	_Static_assert(sizeof(state.leaf) == sizeof(registers->leaf), "DWARF order of both");
	memcpy(state.leaf, registers->leaf, sizeof(state.leaf));
	return state;
}

static bool is_out_of_copy(const struct wire_stack_copy *copy, uint64_t address)
{
	return copy->stack_bytes && address - copy->sp >= copy->stack_bytes;
}

enum wire_stop unwind_user_stack(const struct unwind_target *target,
	const struct wire_stack_copy *registers, uint64_t *ret_frames, size_t capacity,
	size_t *ret_count)
{
	struct unwind_state state = first_state(registers);
	int result = UNWIND_CONTINUE;
	bool on_other_stack = false;
	size_t count = 0;

	while (result == UNWIND_CONTINUE) {
		struct unwind_rule rule;

		if (count == capacity) {
			result = UNWIND_STOPPED(WIRE_STOP_DEPTH);
			break;
		}
		ret_frames[count] = unwind_lookup_pc(&state);
		result = find_rule(target, ret_frames[count++], &rule);
		if (result == UNWIND_CONTINUE)
			result = unwind_step((void *)target, &state, &rule);
		if (result == UNWIND_CONTINUE && rule.cfa == UNWIND_CFA_SIGNAL)
			on_other_stack = is_out_of_copy(registers, state.sp);
	}
	*ret_count = count;
	if (on_other_stack && result != UNWIND_STOPPED(WIRE_STOP_COMPLETE))
		return WIRE_STOP_OTHER_STACK;
	return UNWIND_STOP_REASON(result);
}

bool unwind_is_signal_return(const uint64_t *table, uint64_t word_count, uint64_t vaddr)
{
	struct bounded_table bounded = {table, word_count};
	struct unwind_rule rule;

	unwind_table_find(&bounded, vaddr, &rule);
	return rule.cfa == UNWIND_CFA_SIGNAL;
}
