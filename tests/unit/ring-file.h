/* SPDX-License-Identifier: Apache-2.0 */
/* A process's ring file, for tests: this process plays the profiled one. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "wire/ring.h"

/* Makes the file in the session's folder and maps it, as the injected library does. */
static inline struct wire_ring_file *make_ring_file(const char *folder, char *ret_path, size_t size)
{
	struct wire_ring_file *file;
	_cleanup_close_ int fd = -1;

	snprintf(ret_path, size, "%s/" WIRE_RING_PREFIX "1.1", folder);
	fd = open(ret_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)WIRE_RING_FILE_BYTES), 0);
	file = mmap(NULL, WIRE_RING_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	file->version = WIRE_RING_VERSION;
	file->pid = (uint32_t)getpid();
	file->ring_count = WIRE_RING_COUNT;
	file->ring_bytes = WIRE_RING_BYTES;
	file->magic = WIRE_RING_MAGIC;
	return file;
}
