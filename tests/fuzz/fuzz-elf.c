/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF file: everything elf_file.h offers, and the unwind table of it. */
#include <stdint.h>

#include "elf/elf_file.h"
#include "target.h"
#include "unwind/build.h"

/* Touches both ends, so that a wrong length is seen by the sanitizer. */
static void touch(const struct elf_bytes *bytes)
{
	volatile uint8_t sink;

	if (!bytes->length)
		return;
	sink = bytes->bytes[0];
	sink = bytes->bytes[bytes->length - 1];
	(void)sink;
}

static void read_everything(struct elf_file *file)
{
	static const char *const names[] = {
		".text", ".eh_frame", ".debug_info", ".symtab", ".gnu_debugdata", "", NULL};
	struct elf_bytes bytes;
	uint64_t vaddr;

	for (size_t i = 0; names[i]; i++)
		if (elf_file_section(file, names[i], &bytes))
			touch(&bytes);
	for (size_t i = 0; i < elf_file_segment_count(file); i++) {
		const struct elf_segment *segment = elf_file_segment(file, i);

		if (elf_file_window(file, segment->vaddr, segment->file_size, &bytes))
			touch(&bytes);
	}
	if (elf_file_window(file, elf_file_entry(file), UINT64_MAX, &bytes))
		touch(&bytes);
	if (elf_file_loaded_rest(file, elf_file_entry(file), &bytes))
		touch(&bytes);
	elf_file_function_start(file, elf_file_entry(file), &vaddr);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	struct unwind_table table;
	struct errmsg err;

	if (elf_file_open_memory(&file, bytes, length, "input", &err) < 0)
		return 0;
	read_everything(file);
	if (unwind_table_build(&table, file, NULL, &err) == 0) {
		if (!unwind_table_is_valid(table.words, table.word_count))
			abort();
		unwind_table_done(&table);
	}
	return 0;
}
