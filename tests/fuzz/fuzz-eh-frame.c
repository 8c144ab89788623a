/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as call frame information. The first byte says of which kind, the rest becomes the
 * section of an otherwise good ELF file; then a stack is unwound with the table from every page of
 * its code.
 */
#include <stdint.h>

#include "base/map.h"
#include "elf/elf_file.h"
#include "frame_image.h"
#include "target.h"
#include "unwind/build.h"
#include "unwind/stack.h"

/* Memory whose words are sometimes code addresses, sometimes stack addresses, sometimes out of
 * reach. */
static int read_u64(void *context, uint64_t address, uint64_t *ret_value)
{
	uint64_t hash = hash_u64(address);

	if (hash % 16 == 0)
		return -1;
	*ret_value = hash & 1 ? FRAME_IMAGE_CODE_VADDR + hash % FRAME_IMAGE_CODE_BYTES
			      : address + hash % 256;
	return 0;
}

static bool locate(void *context, uint64_t address, struct unwind_location *ret_location)
{
	const struct unwind_table *table = context;

	*ret_location = (struct unwind_location){
		.table = table->words, .table_word_count = table->word_count};
	return address >= FRAME_IMAGE_CODE_VADDR &&
	       address < FRAME_IMAGE_CODE_VADDR + FRAME_IMAGE_CODE_BYTES;
}

static void unwind_with(struct unwind_table *table)
{
	struct unwind_target target = {.context = table, .read_u64 = read_u64, .locate = locate};
	uint64_t frames[WIRE_MAX_USER_FRAMES];
	size_t count;

	for (uint64_t pc = FRAME_IMAGE_CODE_VADDR;
		pc < FRAME_IMAGE_CODE_VADDR + FRAME_IMAGE_CODE_BYTES; pc += 4099) {
		struct wire_stack_copy registers = {
			.pc = pc, .sp = 1 << 20, .fp = 1 << 21, .second = pc};

		if (unwind_user_stack(&target, &registers, frames, WIRE_MAX_USER_FRAMES, &count) >=
				WIRE_STOP_MAX ||
			count == 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	_cleanup_strbuf_ struct strbuf image = {0};
	struct unwind_table table;
	struct errmsg err;

	if (length == 0)
		return 0;
	if (frame_image_write(&(struct frame_image){.cfi = bytes + 1,
				      .cfi_length = length - 1,
				      .is_debug_frame = bytes[0] & 1},
		    &image) < 0)
		return 0;
	if (elf_file_open_memory(&file, image.data, image.length, "input", &err) < 0)
		abort();
	if (unwind_table_build(&table, file, NULL, &err) < 0)
		return 0;
	if (!unwind_table_is_valid(table.words, table.word_count))
		abort();
	unwind_with(&table);
	unwind_table_done(&table);
	return 0;
}
