/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/function_starts.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "arch/code.h"
#include ARCH_HEADER(files)

/* Instructions between two looks at the file's limits. */
#define INSTRUCTIONS_AT_A_TIME 65536
/* More starts than any program has functions: each call of it gives one until they are sorted. */
#define STARTS_MAX ((size_t)8 << 20)

static int compare_starts(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static int read_symbols(struct function_starts *starts, struct elf_file *file, const char *section)
{
	struct elf_bytes bytes;

	if (!elf_file_section(file, section, &bytes))
		return 0;
	for (size_t at = 0; bytes.length - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;

		memcpy(&symbol, bytes.bytes + at, sizeof(symbol));
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF)
			continue;
		if (array_append(&starts->items, symbol.st_value) < 0)
			return -ENOMEM;
	}
	return 0;
}

int function_starts_read(struct function_starts *starts, struct elf_file *file)
{
	if (read_symbols(starts, file, ".symtab") < 0 || read_symbols(starts, file, ".dynsym") < 0)
		return -ENOMEM;
	if (starts->items.count)
		qsort(starts->items.items, starts->items.count, sizeof(uint64_t), compare_starts);
	return 0;
}

void function_starts_done(struct function_starts *starts)
{
	array_done(&starts->items);
}

/* How many starts are at `vaddr` or before it: the index of the first behind it. */
static size_t count_up_to(const struct function_starts *starts, uint64_t vaddr)
{
	size_t low = 0, high = starts->items.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (starts->items.items[middle] <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t function_starts_next(const struct function_starts *starts, uint64_t vaddr, uint64_t end)
{
	size_t next = count_up_to(starts, vaddr);

	return next < starts->items.count ? MIN(end, starts->items.items[next]) : end;
}

bool function_starts_has(const struct function_starts *starts, uint64_t vaddr)
{
	return function_starts_next(starts, vaddr - 1, vaddr + 1) == vaddr;
}

bool function_starts_before(
	const struct function_starts *starts, uint64_t vaddr, uint64_t *ret_start)
{
	size_t next = count_up_to(starts, vaddr);

	if (next == 0)
		return false;
	*ret_start = starts->items.items[next - 1];
	return true;
}

/* ---- From code ---- */

/* The address that the instruction calls, or takes; 0: none. */
static uint64_t function_reference(
	const uint8_t *code, uint64_t vaddr, const struct arch_instruction *instruction)
{
	if (instruction->effect == ARCH_CALL)
		return (uint64_t)instruction->value;
	return arch_address_taken(code, vaddr, instruction);
}

static int add_reference(
	struct function_starts *starts, const struct elf_file *file, uint64_t vaddr)
{
	const struct elf_segment *segment = vaddr ? elf_file_segment_at(file, vaddr) : NULL;

	if (!segment || !segment->executable)
		return 0;
	if (starts->items.count >= STARTS_MAX)
		return -EFBIG;
	return array_append(&starts->items, vaddr);
}

/* Reads the code of one window. What is no instruction is skipped byte by byte. */
static int read_window(struct function_starts *starts, struct elf_file *file,
	const struct elf_bytes *code, uint64_t *instructions)
{
	struct arch_instruction instruction;
	int result = 0;

	for (size_t at = 0; at < code->length && result == 0; at += instruction.length) {
		const uint8_t *here = code->bytes + at;
		uint64_t vaddr = code->vaddr + at;

		if (arch_decode(here, code->length - at, vaddr, &instruction))
			result = add_reference(
				starts, file, function_reference(here, vaddr, &instruction));
		else
			instruction.length = 1;
		if (result == 0 && ++*instructions % INSTRUCTIONS_AT_A_TIME == 0)
			result = elf_file_status(file);
	}
	return result;
}

static void sort_once(struct function_starts *starts)
{
	uint64_t *items = starts->items.items;
	size_t kept = 0;

	if (!starts->items.count)
		return;
	qsort(items, starts->items.count, sizeof(*items), compare_starts);
	for (size_t i = 0; i < starts->items.count; i++)
		if (kept == 0 || items[i] != items[kept - 1])
			items[kept++] = items[i];
	starts->items.count = kept;
}

int function_starts_from_code(struct function_starts *starts, struct elf_file *file)
{
	uint64_t vaddr, length, instructions = 0;
	size_t position = 0;
	int result = 0;

	while (result == 0 && elf_file_next_code(file, &position, &vaddr, &length)) {
		uint64_t end = vaddr + MIN(length, elf_file_loaded_length(file, vaddr));
		struct elf_bytes code;

		while (result == 0 && vaddr < end &&
			elf_file_window(file, vaddr, end - vaddr, &code)) {
			result = read_window(starts, file, &code, &instructions);
			vaddr += code.length;
		}
	}
	if (result == 0)
		result = add_reference(starts, file, elf_file_entry(file));
	if (result == 0)
		result = elf_file_status(file);
	sort_once(starts);
	return result;
}
