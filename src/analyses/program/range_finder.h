/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranges were open at many moments of threads: all of them in one pass. */
#pragma once

#include "analyses/selection.h"
#include "base/array.h"
#include "model/model.h"

/* A moment of a thread; thread MODEL_NONE: only ranges of the process are found. */
struct range_moment {
	uint64_t time_ns;
	uint32_t process, thread;
	uint32_t index; /* the caller's */
};

struct range_moments {
	ARRAY_OF(struct range_moment) items;
};

/* Append the samples of running threads (`selected` NULL: all), and the launches of device work;
 * `index` is that of the sample or the work. Return 0 or -ENOMEM. */
int range_moments_add_samples(
	struct range_moments *moments, const struct model *model, const struct selected *selected);
int range_moments_add_launches(struct range_moments *moments, const struct model *model);
void range_moments_done(struct range_moments *moments);
#define _cleanup_range_moments_ _cleanup_(range_moments_done)

/* Time of a thread, or of a process whatever its threads do: thread MODEL_NONE. */
struct range_span {
	uint64_t start_ns, end_ns;
	uint32_t process, thread;
	uint32_t index; /* the caller's; of two that begin at once the first one is the outer one */
};

/* Calls for each range that is open at each moment, outer ones first; a negative return ends it. */
typedef int range_found_function(void *context, const struct range_moment *moment, uint32_t range);

/*
 * Sorts the moments. A range is open from its start up to, but not at its end. Returns 0, -ENOMEM,
 * or what the function returned.
 */
int range_find(const struct model *model, struct range_moment *moments, size_t count,
	range_found_function *found, void *context);
/* The same of these spans: the function gets their index. */
int range_find_spans(const struct range_span *spans, size_t span_count,
	struct range_moment *moments, size_t count, range_found_function *found, void *context);
