/* SPDX-License-Identifier: Apache-2.0 */
/* What a slice is linked to: launches and their work, operators and those of their gradients. */
#pragma once

#include "query/timeline/tracks.h"

enum timeline_link_kind {
	TIMELINE_LINK_LAUNCHED_BY, /* from work to its call */
	TIMELINE_LINK_LAUNCHED,    /* from a call, or what it lies in, to the work */
	TIMELINE_LINK_BACKWARD,    /* from an operator to the one of its gradient */
	TIMELINE_LINK_FORWARD,     /* and back */
	TIMELINE_LINK_MAX,
};

struct timeline_link {
	enum timeline_link_kind kind;
	/* The other end: a slice. */
	uint32_t track, lane;
	size_t place;
	/* This end, in the track of the slice that was asked about: that slice, or one inside. */
	int64_t from_ns;
	uint32_t from_lane;
};

struct timeline_links {
	ARRAY_OF(struct timeline_link) items; /* at most TIMELINE_LINKS_MAX */
	uint64_t count;                       /* with those that are too many */
};

/* As documents have it: "launched_by". */
const char *timeline_link_name(enum timeline_link_kind kind);

/*
 * Of the slice at `place` of the lane that the request names, and of what lies inside of it.
 * Returns 0 or -ENOMEM; the links are the caller's in both cases.
 */
int timeline_links_find(struct timeline_links *links, const struct timeline *timeline,
	const struct timeline_slice_request *request, size_t place);
void timeline_links_done(struct timeline_links *links);
#define _cleanup_timeline_links_ _cleanup_(timeline_links_done)
