/* SPDX-License-Identifier: Apache-2.0 */
/* A small ELF image around call frame information: for tests and fuzzing of the table compiler. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Code lies at 64 KB, the frame information behind it. */
#define FRAME_IMAGE_CODE_VADDR ((uint64_t)0x10000)
#define FRAME_IMAGE_CODE_BYTES ((uint64_t)0x40000)
#define FRAME_IMAGE_CFI_VADDR  ((uint64_t)0x100000)

struct frame_image {
	const void *cfi; /* bytes of .eh_frame or .debug_frame */
	size_t cfi_length;
	bool is_debug_frame;
	bool is_go;       /* it has the section that Go's linker writes */
	const void *code; /* the first bytes of the code; may be NULL with code_length 0 */
	size_t code_length;
	uint64_t entry;
};

/* Appends the file's bytes to the empty `ret_bytes`. Returns 0 or -ENOMEM. */
int frame_image_write(const struct frame_image *image, struct strbuf *ret_bytes);
