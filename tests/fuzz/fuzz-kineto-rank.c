/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file, plain or compressed, of which only the rank is looked for. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "importers/kineto/kineto.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_close_ int fd = memfd_create("trace", MFD_CLOEXEC);
	uint32_t rank = UINT32_MAX, again = UINT32_MAX;
	char path[32];

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* A rank is found, and the same one each time; or none, and the place for it is untouched.
	 */
	if (kineto_rank(path, &rank) != (rank != UINT32_MAX))
		abort();
	if (kineto_rank(path, &again) != (again != UINT32_MAX) || rank != again)
		abort();
	return 0;
}
