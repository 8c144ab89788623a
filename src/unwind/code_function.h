/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of one function, read from its code. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/code.h"
#include "base/array.h"

/* A function is cut there; no compiler and no person wrote a longer one. */
#define CODE_FUNCTION_MAX_INSTRUCTIONS ((size_t)1 << 20)
/* As many of the longest instructions. */
#define CODE_FUNCTION_MAX_BYTES (CODE_FUNCTION_MAX_INSTRUCTIONS * ARCH_LONGEST_INSTRUCTION)

struct code_instruction {
	struct arch_instruction decoded;
	uint32_t offset; /* from the function's start */
	uint32_t join;   /* for the user; 0 after reading */
};

/* Zero-initialise; memory is kept from one function to the next. */
struct code_function {
	uint64_t begin, end;
	bool has_symbol; /* it starts at a symbol, or ends before one */
	ARRAY_OF(struct code_instruction) instructions;
	ARRAY_OF(uint32_t) index_at; /* by offset: index + 1 of the instruction that starts there */
};

/*
 * Decodes the function at `begin`, up to the instruction after which nothing goes on: no
 * fall-through, and no branch seen so far leads further. It ends at `limit` at the latest. With
 * symbols around it even far branches stay inside. There may be no instruction at all. Returns 0 or
 * -ENOMEM.
 */
int code_function_read(struct code_function *function, const uint8_t *code, uint64_t begin,
	uint64_t limit, bool has_symbol);
void code_function_done(struct code_function *function);

/* The instruction that starts at `vaddr`; NULL when none of the function does. */
struct code_instruction *code_function_at(struct code_function *function, uint64_t vaddr);
/* Keeps the first `count` instructions, fewer than there are. */
void code_function_cut(struct code_function *function, size_t count);
/* True when the flow does not go on to the next instruction in memory. */
bool code_ends_flow(const struct arch_instruction *instruction);
/* Where the nops and zeros end that fill the space from `at` on, at most `limit`. */
uint64_t code_skip_padding(const uint8_t *code, uint64_t at, uint64_t limit);
