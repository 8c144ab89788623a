/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranges were open at many moments of threads: all of them in one pass. */
#pragma once

#include "base/array.h"
#include "model/model.h"

/* A moment of a thread; thread MODEL_NONE: only ranges of the process are found. */
struct range_moment {
	uint64_t time_ns;
	uint32_t process, thread;
	uint32_t index; /* the caller's */
};

/* Calls for each range that is open at each moment; a negative return ends it. */
typedef int range_found_function(void *context, const struct range_moment *moment, uint32_t range);

/*
 * Sorts the moments. A range is open from its start up to, but not at its end. Returns 0, -ENOMEM,
 * or what the function returned.
 */
int range_find(const struct model *model, struct range_moment *moments, size_t count,
	range_found_function *found, void *context);
