/* SPDX-License-Identifier: Apache-2.0 */
#include "base/huge_pages.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * For the whole mapping that malloc made, its own header in front included: realloc moves it by
 * mremap, which takes no more than one mapping at once.
 */
void want_huge_pages_(void *allocated)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)allocated & ~(page - 1);
	uintptr_t end = ((uintptr_t)allocated + malloc_usable_size(allocated)) & ~(page - 1);
	int saved = errno;

	madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	errno = saved;
}

void give_pages_back(void *memory, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)memory + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)memory + bytes) & ~(page - 1);
	int saved = errno;

	if (begin < end)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
	errno = saved;
}
