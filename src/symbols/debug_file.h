/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The separate debug file of an ELF file: by build-id in /usr/lib/debug/.build-id, else by the name
 * and checksum in .gnu_debuglink, beside the file, in its .debug folder, or in the same folder
 * below /usr/lib/debug.
 */
#pragma once

#include <stdint.h>

#include "base/errmsg.h"
#include "elf/elf_file.h"

/* Where to look. */
struct debug_file_search {
	struct elf_file *file;
	const char *root; /* where absolute paths begin, "" for this system's; not NULL */
	const char
		*path; /* of the file, inside root; NULL: unknown, .gnu_debuglink is not followed */
};

/*
 * Debug files are opened with the rights of the owner of `search->file`, who or root must own them;
 * links are followed below /usr/lib/debug only, and only regular files are opened.
 *
 * Opens the first file that belongs to `search->file` (same build-id; for files without one, the
 * CRC of .gnu_debuglink) and holds `section_name`. Its descriptor in *ret_fd, to be closed, unless
 * NULL. Returns -ENOENT when there is none, or -ENOMEM.
 */
int debug_file_open(struct elf_file **ret_debug_file, int *ret_fd,
	const struct debug_file_search *search, const char *section_name);

/*
 * A hash of which of the places hold a file now, its size and time of change; 0 when none does.
 * Costs a few stat() calls; another value means that debug_file_open() may give another result.
 */
uint64_t debug_file_fingerprint(const struct debug_file_search *search);
