/* SPDX-License-Identifier: Apache-2.0 */
/* Several files at a time: as many threads as there are processors, of which the caller's is one.
 */
#pragma once

#include <stddef.h>

/* How many threads that is at most. */
size_t parallel_threads(void);
/* Calls run(index, context) once for each index below `count`; returns when all are done. */
void parallel_each(size_t count, void (*run)(size_t index, void *context), void *context);
