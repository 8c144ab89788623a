/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a rank's communication its own compute kernels hide, and which ones. */
#pragma once

#include "analyses/trace_view.h"

/* Compute kernels that ran beside collectives of one name. Strings are those of `strings`. */
struct collective_cover {
	uint32_t name, kernel;
	uint64_t ns;
};

struct collective_covers {
	struct intern keys; /* name and kernel → index */
	ARRAY_OF(struct collective_cover) items;
};

struct collective_overlap {
	const struct trace_view *view;
	ARRAY_OF(uint32_t) kernels;             /* compute in view->works, by start */
	ARRAY_OF(struct trace_view_times) busy; /* their union */
	ARRAY_OF(uint64_t) busy_ns;             /* of those before each of them */
	int64_t longest_ns;                     /* of the kernels */
};

/* Both return 0 or -ENOMEM. `device`: index in view->devices. */
int collective_overlap_init(
	struct collective_overlap *overlap, const struct trace_view *view, uint32_t device);
void collective_overlap_done(struct collective_overlap *overlap);
/*
 * The time in [start_ns, end_ns) that no compute kernel ran; adds to `covers` those that did,
 * beside a collective called `name` (a string of `strings`).
 */
int collective_overlap_add(const struct collective_overlap *overlap, int64_t start_ns,
	int64_t end_ns, uint32_t name, struct intern *strings, struct collective_covers *covers,
	int64_t *ret_exposed_ns);
void collective_covers_done(struct collective_covers *covers);
