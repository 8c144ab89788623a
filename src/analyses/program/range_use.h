/* SPDX-License-Identifier: Apache-2.0 */
/* What happened in ranges: how long they took, how many samples fell into them, and the device work
 * that was launched there. */
#pragma once

#include "analyses/selection.h"
#include "base/array.h"
#include "model/model.h"

/* All ranges, or marks, of one name in one domain. */
struct range_row {
	const char *name, *domain;
	bool is_mark;
	bool of_process; /* not of one thread */
	uint64_t count, open_count;
	uint64_t total_ns, minimum_ns, maximum_ns; /* those in one another count each */
	uint64_t samples;                          /* of running threads, each once */
	/* Of payloads named "bytes", as collectives have them: */
	uint64_t with_bytes, bytes; /* how many ranges, and all their bytes */
	/* Device work that was launched inside: */
	uint64_t works;
	uint64_t device_span_ns; /* of each range from the first start to the last end, added up */
	uint64_t device_busy_ns; /* some of it ran: overlapping work of a device counts once */
};

struct range_use {
	ARRAY_OF(struct range_row) rows; /* longest first, marks last */
	uint64_t samples;                /* of running threads, in all */
	uint64_t ranges, marks;
};

/* Of a model that was not weighed; its selected samples, NULL: all. Returns 0 or -ENOMEM. Strings
 * are the model's. */
int range_use_init(
	struct range_use *use, const struct model *model, const struct selected *selected);
void range_use_done(struct range_use *use);
#define _cleanup_range_use_ _cleanup_(range_use_done)
