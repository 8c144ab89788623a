/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/code_function.h"

#include <string.h>

/* Without symbols, branches further ahead are taken to lead to other functions. */
#define MAX_FUNCTION_BYTES ((uint64_t)1 << 18)

bool code_ends_flow(const struct x86_instruction *instruction)
{
	return instruction->effect == X86_JUMP || instruction->effect == X86_JUMP_INDIRECT ||
	       instruction->effect == X86_RETURN || instruction->effect == X86_TRAP;
}

static int note_instruction(
	struct code_function *function, const struct x86_instruction *x86, uint64_t at)
{
	uint32_t offset = (uint32_t)(at - function->begin);
	struct code_instruction instruction = {.x86 = *x86, .offset = offset};

	if (array_append(&function->instructions, instruction) < 0 ||
		array_reserve(&function->index_at, x86->length) < 0)
		return -ENOMEM;
	memset(&function->index_at.items[offset], 0, x86->length * sizeof(uint32_t));
	function->index_at.items[offset] = (uint32_t)function->instructions.count;
	function->index_at.count = offset + x86->length;
	return 0;
}

int code_function_read(struct code_function *function, const uint8_t *code, uint64_t begin,
	uint64_t limit, bool has_symbol)
{
	uint64_t at = begin, furthest = begin;
	uint64_t reach = has_symbol ? limit : MIN(limit, begin + MAX_FUNCTION_BYTES);
	struct x86_instruction x86;

	function->begin = begin;
	function->has_symbol = has_symbol;
	array_clear(&function->instructions);
	array_clear(&function->index_at);
	while (at < limit && function->instructions.count < CODE_FUNCTION_MAX_INSTRUCTIONS &&
		x86_decode(code + (at - begin), limit - at, at, &x86)) {
		if (note_instruction(function, &x86, at) < 0)
			return -ENOMEM;
		at += x86.length;
		if ((x86.effect == X86_JUMP || x86.effect == X86_JUMP_IF) &&
			(uint64_t)x86.value < reach)
			furthest = MAX(furthest, (uint64_t)x86.value);
		if (code_ends_flow(&x86) && at > furthest)
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
	struct x86_instruction x86;
	uint64_t begin = at;

	while (at < limit) {
		const uint8_t *here = code + (at - begin);

		if (here[0] == 0)
			at++;
		else if (x86_decode(here, limit - at, at, &x86) && x86.effect == X86_PADDING)
			at += x86.length;
		else
			break;
	}
	return at;
}
