/* SPDX-License-Identifier: Apache-2.0 */
/* Large memory in huge pages, where the kernel has them on request: fewer page faults and misses.
 */
#pragma once

#include <stddef.h>

#define HUGE_PAGES_FROM ((size_t)8 * 1024 * 1024)

/* Of what malloc, calloc or realloc gave. */
void want_huge_pages_(void *allocated);

/* To be called before most of it is written. Advice only; errno stays. */
static inline void want_huge_pages(void *allocated, size_t bytes)
{
	if (bytes >= HUGE_PAGES_FROM)
		want_huge_pages_(allocated);
}

/* Memory whose contents are needed no more, before it is freed: the whole pages in it go at once.
 */
void give_pages_back(void *memory, size_t bytes);
