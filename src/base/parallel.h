/* SPDX-License-Identifier: Apache-2.0 */
/* Several things at a time: as many threads as there are processors, of which the caller's is one.
 */
#pragma once

#include <stddef.h>

/* Calls run(index, context) once for each index below `count`; returns when all are done. */
void parallel_each(size_t count, void (*run)(size_t index, void *context), void *context);
/* How many threads each of so many may have then; at least 1. */
unsigned parallel_share(size_t count);
