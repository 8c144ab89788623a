/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions start, by the symbols of a file, or without any by what its code calls. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "elf/elf_file.h"

struct function_starts {
	ARRAY_OF(uint64_t) items; /* ascending */
};

/* Reads .symtab and .dynsym into the zeroed `starts`. Returns 0 or -ENOMEM; call done in either
 * case. */
int function_starts_read(struct function_starts *starts, struct elf_file *file);
/*
 * For a file without symbols, and without call frame information for most of its code: the targets
 * of its calls, and the addresses in code that it takes. Functions that are reached in no such way
 * count to the one before. Reads all code. Returns 0 or a negative errno, as of elf_file_status();
 * call done in either case.
 */
int function_starts_from_code(struct function_starts *starts, struct elf_file *file);
void function_starts_done(struct function_starts *starts);

/* The first start above `vaddr`, at most `end`. */
uint64_t function_starts_next(const struct function_starts *starts, uint64_t vaddr, uint64_t end);
bool function_starts_has(const struct function_starts *starts, uint64_t vaddr);
/* The last start up to `vaddr`; false when there is none. */
bool function_starts_before(
	const struct function_starts *starts, uint64_t vaddr, uint64_t *ret_start);
