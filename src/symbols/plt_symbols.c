/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the procedure linkage table. Linkers lay it out in several ways (lazy, eager, with IBT,
 * in .plt.got), but every entry that jumps to a function does it through one slot of the
 * global offset table; the relocation of that slot has the name. An entry that only pushes (lazy
 * .plt beside .plt.sec) has the relocation's number.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "arch/arch.h"
#include ARCH_HEADER(files)
#include "base/array.h"
#include "symbols/elf_symbols.h"

#define PLT_SUFFIX    "@plt"
#define PLT_NAMES_MAX ((size_t)64 << 20)
#define PLT_RANK      0 /* any symbol of the file at the same address is better */

struct slot {
	uint64_t address;
	const char *name;
};

struct plt_reading {
	struct elf_file *file;
	struct symbol_candidates *candidates; /* the first ones are known, and sorted */
	ARRAY_OF(struct slot) slots;          /* of the global offset table, sorted by address */
	ARRAY_OF(struct slot) lazy;           /* in order of .rela.plt */
	size_t first_candidate;
};

static int compare_slots(const void *left, const void *right)
{
	const struct slot *a = left, *b = right;

	return (a->address > b->address) - (a->address < b->address);
}

/* The name of the function that starts at the address, for relocations against a place, not a
 * symbol. */
static const char *function_at(const struct plt_reading *reading, uint64_t address)
{
	const struct symbol_candidate *known = reading->candidates->items;
	size_t low = 0, high = reading->first_candidate;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (known[middle].start < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == reading->first_candidate || known[low].start != address)
		return NULL;
	return known[low].name;
}

static const char *symbol_name(const struct elf_symbol_table *table, size_t index)
{
	const char *name = NULL;
	Elf64_Sym symbol;

	if (index < table->symbol_count) {
		symbol = elf_symbol_table_get(table, index);
		name = elf_symbol_table_name(table, &symbol);
	}
	return name && name[0] ? name : NULL;
}

static const char *relocation_name(const struct plt_reading *reading,
	const struct elf_symbol_table *table, const Elf64_Rela *relocation)
{
	switch (ELF64_R_TYPE(relocation->r_info)) {
	case ARCH_RELOCATION_JUMP_SLOT:
	case ARCH_RELOCATION_GLOBAL_DATA:
		return symbol_name(table, ELF64_R_SYM(relocation->r_info));
	case ARCH_RELOCATION_INDIRECT:
		return function_at(reading, (uint64_t)relocation->r_addend);
	default:
		return NULL;
	}
}

/* Relocations between two looks at the limits. */
#define RELOCATIONS_AT_A_TIME 8192

static int read_relocations(struct plt_reading *reading, const char *section_name, bool lazy)
{
	size_t index = elf_file_find_section(reading->file, section_name);
	struct elf_symbol_table names = {0};
	const Elf64_Shdr *header;
	struct elf_bytes entries;
	int result = 0;

	if (!index)
		return 0;
	header = elf_file_section_header(reading->file, index);
	if (header->sh_type != SHT_RELA || header->sh_entsize != sizeof(Elf64_Rela) ||
		!elf_file_section_bytes(reading->file, index, &entries))
		return 0;
	elf_symbol_table_read(&names, reading->file, header->sh_link);
	for (size_t i = 0; i < entries.length / sizeof(Elf64_Rela) && result == 0; i++) {
		Elf64_Rela relocation;
		struct slot slot;

		memcpy(&relocation, entries.bytes + i * sizeof(relocation), sizeof(relocation));
		slot.address = relocation.r_offset;
		slot.name = relocation_name(reading, &names, &relocation);
		if (slot.name)
			result = array_append(&reading->slots, slot);
		if (lazy && result == 0)
			result = array_append(&reading->lazy, slot);
		if (result == 0 && i % RELOCATIONS_AT_A_TIME == RELOCATIONS_AT_A_TIME - 1)
			result = elf_file_status(reading->file);
	}
	return result;
}

/* The function that the entry leads to. NULL: no such entry. */
static const char *entry_name(
	const struct plt_reading *reading, const uint8_t *entry, size_t length, uint64_t vaddr)
{
	struct arch_plt_target target;
	const struct slot *found = NULL;
	struct slot wanted;

	if (!arch_plt_read(entry, length, vaddr, &target))
		return NULL;
	if (!target.slot)
		/* The analyzer does not see that a list with items has memory. */
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
		return target.number < reading->lazy.count ? reading->lazy.items[target.number].name
							   : NULL;
	wanted.address = target.slot;
	if (reading->slots.count)
		found = bsearch(&wanted, reading->slots.items, reading->slots.count, sizeof(wanted),
			compare_slots);
	return found ? found->name : NULL;
}

static int read_entries(struct plt_reading *reading, const char *section_name)
{
	size_t index = elf_file_find_section(reading->file, section_name);
	size_t step = ARCH_PLT_ENTRY_BYTES;
	const Elf64_Shdr *header;
	struct elf_bytes code;
	int result = 0;

	if (!index)
		return 0;
	header = elf_file_section_header(reading->file, index);
	if (!(header->sh_flags & SHF_EXECINSTR) ||
		!elf_file_section_bytes(reading->file, index, &code))
		return 0;
	if (header->sh_entsize == 8) /* .plt.got without IBT */
		step = 8;
	for (size_t at = 0; at < code.length && result == 0; at += step) {
		size_t length = code.length - at < step ? code.length - at : step;
		struct symbol_candidate candidate = {
			.start = code.vaddr + at,
			.end = code.vaddr + at + length,
			.rank = PLT_RANK,
			.sized = true,
		};

		candidate.name = entry_name(reading, code.bytes + at, length, candidate.start);
		if (candidate.name)
			result = array_append(reading->candidates, candidate);
	}
	return result;
}

/* Gives the candidates found here names of their own, with the suffix. */
static int add_suffixes(struct plt_reading *reading, char **ret_names)
{
	struct symbol_candidates *candidates = reading->candidates;
	size_t i, total = 1;
	char *at;

	for (i = reading->first_candidate; i < candidates->count && total < PLT_NAMES_MAX; i++)
		total += strlen(candidates->items[i].name) + sizeof(PLT_SUFFIX);
	candidates->count = i;
	candidates->string_bytes += total;
	*ret_names = at = malloc(total);
	if (!at)
		return -ENOMEM;
	for (i = reading->first_candidate; i < candidates->count; i++) {
		const char *name = candidates->items[i].name;

		candidates->items[i].name = at;
		at = stpcpy(stpcpy(at, name), PLT_SUFFIX) + 1;
	}
	return 0;
}

static int collect(struct plt_reading *reading, char **ret_names)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got"};
	int result = read_relocations(reading, ".rela.plt", true);

	if (result == 0)
		result = read_relocations(reading, ".rela.dyn", false);
	if (result < 0)
		return result;
	if (reading->slots.count)
		qsort(reading->slots.items, reading->slots.count, sizeof(*reading->slots.items),
			compare_slots);
	for (size_t i = 0; i < ARRAY_SIZE(sections) && result == 0; i++)
		result = read_entries(reading, sections[i]);
	return result < 0 ? result : add_suffixes(reading, ret_names);
}

int plt_symbols_collect(
	struct symbol_candidates *candidates, struct elf_file *file, char **ret_names)
{
	struct plt_reading reading = {
		.file = file,
		.candidates = candidates,
		.first_candidate = candidates->count,
	};
	int result;

	*ret_names = NULL;
	if (elf_file_machine(file) != ARCH_ELF_MACHINE)
		return 0;
	result = collect(&reading, ret_names);
	if (result < 0)
		candidates->count = reading.first_candidate;
	array_done(&reading.slots);
	array_done(&reading.lazy);
	return result;
}
