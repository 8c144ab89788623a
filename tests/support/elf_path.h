/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file by its path: sonde itself opens files by descriptors, which it has checked. */
#pragma once

#include <errno.h>
#include <fcntl.h>

#include "base/file.h"
#include "elf/elf_file.h"

static inline int open_elf(struct elf_file **ret_file, const char *path,
	const char *name_for_messages, struct errmsg *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : elf_file_open_fd(ret_file, fd, name_for_messages, err);
}
