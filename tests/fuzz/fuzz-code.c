/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as machine code without call frame information, which the table compiler then reads. */
#include <stdint.h>
#include <stdlib.h>

#include "elf/elf_file.h"
#include "frame_image.h"
#include "target.h"
#include "unwind/build.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	_cleanup_strbuf_ struct strbuf image = {0};
	struct unwind_table table;
	struct errmsg err;

	if (length > FRAME_IMAGE_CODE_BYTES)
		return 0;
	if (frame_image_write(&(struct frame_image){.code = bytes, .code_length = length}, &image) <
		0)
		return 0;
	if (elf_file_open_memory(&file, image.data, image.length, "input", &err) < 0)
		abort();
	if (unwind_table_build(&table, file, NULL, &err) < 0)
		return 0;
	if (!unwind_table_is_valid(table.words, table.word_count))
		abort();
	unwind_table_done(&table);
	return 0;
}
