/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/code_function.h"

#include <string.h>

/* Without symbols, branches further ahead are taken to lead to other functions. */
#define MAX_FUNCTION_BYTES ((uint64_t)1 << 18)

bool code_ends_flow(const struct arch_instruction *instruction)
{
	return instruction->effect == ARCH_JUMP || instruction->effect == ARCH_JUMP_INDIRECT ||
	       instruction->effect == ARCH_RETURN || instruction->effect == ARCH_TRAP;
}

static int note_instruction(
	struct code_function *function, const struct arch_instruction *decoded, uint64_t at)
{
	uint32_t offset = (uint32_t)(at - function->begin);
	struct code_instruction instruction = {.decoded = *decoded, .offset = offset};

	if (array_append(&function->instructions, instruction) < 0 ||
		array_reserve(&function->index_at, decoded->length) < 0)
		return -ENOMEM;
	memset(&function->index_at.items[offset], 0, decoded->length * sizeof(uint32_t));
	function->index_at.items[offset] = (uint32_t)function->instructions.count;
	function->index_at.count = offset + decoded->length;
	return 0;
}

int code_function_read(struct code_function *function, const uint8_t *code, uint64_t begin,
	uint64_t limit, bool has_symbol)
{
	uint64_t at = begin, furthest = begin;
	uint64_t reach = has_symbol ? limit : MIN(limit, begin + MAX_FUNCTION_BYTES);
	struct arch_instruction decoded;

	function->begin = begin;
	function->has_symbol = has_symbol;
	array_clear(&function->instructions);
	array_clear(&function->index_at);
	while (at < limit && function->instructions.count < CODE_FUNCTION_MAX_INSTRUCTIONS &&
		arch_decode(code + (at - begin), limit - at, at, &decoded)) {
		if (note_instruction(function, &decoded, at) < 0)
			return -ENOMEM;
		at += decoded.length;
		if ((decoded.effect == ARCH_JUMP || decoded.effect == ARCH_JUMP_IF) &&
			(uint64_t)decoded.value < reach)
			furthest = MAX(furthest, (uint64_t)decoded.value);
		if (code_ends_flow(&decoded) && at > furthest)
			break;
	}
	function->end = at;
	return 0;
}

void code_function_done(struct code_function *function)
{
	array_done(&function->instructions);
	array_done(&function->index_at);
}

struct code_instruction *code_function_at(struct code_function *function, uint64_t vaddr)
{
	uint32_t index;

	if (vaddr < function->begin || vaddr - function->begin >= function->index_at.count)
		return NULL;
	index = function->index_at.items[vaddr - function->begin];
	return index ? &function->instructions.items[index - 1] : NULL;
}

void code_function_cut(struct code_function *function, size_t count)
{
	function->index_at.count = function->instructions.items[count].offset;
	function->end = function->begin + function->index_at.count;
	function->instructions.count = count;
}

uint64_t code_skip_padding(const uint8_t *code, uint64_t at, uint64_t limit)
{
	struct arch_instruction decoded;
	uint64_t begin = at;

	while (at < limit) {
		const uint8_t *here = code + (at - begin);

		if (here[0] == 0)
			at++;
		else if (arch_decode(here, limit - at, at, &decoded) &&
			 decoded.effect == ARCH_PADDING)
			at += decoded.length;
		else
			break;
	}
	return at;
}
