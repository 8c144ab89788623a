/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened when, for a picture that one can zoom into: tracks, and tiles of them. A tile is a
 * track in a span of time at a width in pixels: slices that are narrower than a column are merged,
 * so that an answer is as large as the picture, not as the recording. An index over each track
 * makes it so fast.
 *
 * It reads the model of a query, and does not use it up; both outlive the timeline. All is
 * read-only once built: children that were forked can ask, too.
 *
 * Times are nanoseconds since the timeline's beginning.
 */
#pragma once

#include "query/query.h"

struct timeline;

/* Returns 0 or a negative errno with a sentence; -ENODATA: there is nothing in time. */
int timeline_new(struct timeline **ret_timeline, const struct query *query, struct errmsg *err);
struct timeline *timeline_free(struct timeline *timeline);
void timeline_freep(struct timeline **timeline);
#define _cleanup_timeline_ _cleanup_(timeline_freep)

/*
 * Appends the tracks as a JSON object: {"version", "duration_ns", "tracks": [{"id", "kind", "name",
 * "process", "pid", "tid", "rank", "lanes", "slices", "too_deep", "minimum", "maximum"}]}. Version:
 * of the capture, as given; numbers of tracks, lanes and names are those of this one. Kind:
 * "thread" (operators, ranges, calls), "python" (its Python functions), "stream", "samples"
 * (functions on the CPU or waiting, as sampled), "counter". Tracks of a process follow each other.
 * Lanes: depths; slices in deeper ones than TIMELINE_LANES_MAX are counted in too_deep, and not
 * shown. Minimum and maximum are of counters. Returns 0 or -ENOMEM.
 */
int timeline_tracks(const struct timeline *timeline, uint64_t version, struct strbuf *out);

#define TIMELINE_LANES_MAX   128
#define TIMELINE_COLUMNS_MAX 4096
#define TIMELINE_FLOWS_MAX   1000
#define TIMELINE_LINKS_MAX   200
#define TIMELINE_NAMES_MAX   4096

struct timeline_request {
	uint32_t track;
	int64_t from_ns, to_ns; /* from < to */
	uint32_t columns;       /* 1 to TIMELINE_COLUMNS_MAX */
};

/*
 * Appends a tile. A column is (to - from) / columns wide, rounded up to whole nanoseconds. Of each
 * lane:
 *   - a slice that is as long as a column or longer is there by itself;
 *   - shorter ones that begin in the same column are one slice, from the first one's start to the
 *     last one's end, if more than one: how many, how long they are together, and a name: that
 *     which takes more than half of this time, where there is one, else one of theirs.
 * So a column begins at most two slices of a lane. Slices come by lane, then by time. What began
 * before the tile and reaches into it is in the tile; a short one counts to the first column.
 *
 * Of a counter: for each column in which it changed its first, smallest, largest and last value;
 * before them its value at the tile's beginning, as a column that starts there, if there is one.
 *
 * All is little-endian; arrays follow each other without gaps, each of `count` or `flow_count`
 * values:
 *
 *   offset 0   u32 magic TIMELINE_MAGIC, u32 version 1
 *          8   u32 track, u32 kind: 0 slices, 1 counter
 *         16   f64 from_ns, f64 to_ns
 *         32   u32 columns, u32 count
 *         40   u32 flow_count, u32 flows_left_out
 *         48   slices:  f64 start_ns[count], f64 duration_ns[count], f64 busy_ns[count],
 *                       u32 name[count], u32 merged[count] (1: one slice by itself),
 *                       u32 lane[count], u32 category[count] (enum trace_category)
 *              flows:   f64 from_ns[flow_count], f64 to_ns[flow_count] (the call's start, the
 *                       work's start), u32 from_track[flow_count], u32 from_lane[flow_count],
 *                       u32 to_lane[flow_count], u32 reserved[flow_count] = 0
 *              counter: f64 start_ns[count], f64 first[count], f64 minimum[count],
 *                       f64 maximum[count], f64 last[count]
 *
 * Flows go from a call to the work that it launched, in tiles of streams, for slices by themselves;
 * where there are more than TIMELINE_FLOWS_MAX, none is there and flows_left_out says how many.
 * Returns 0, -ENOMEM, or -EINVAL with a sentence.
 */
#define TIMELINE_MAGIC   0x4c544e53 /* "SNTL" */
#define TIMELINE_VERSION 1
int timeline_tile(const struct timeline *timeline, const struct timeline_request *request,
	struct strbuf *out, struct errmsg *err);

/*
 * Appends the names with these numbers, as tiles have them: a JSON array of texts, in their order;
 * null for a number that there is not. At most TIMELINE_NAMES_MAX. Returns 0, -ENOMEM, or -EINVAL
 * with a sentence.
 */
int timeline_names(const struct timeline *timeline, const uint32_t *names, size_t count,
	struct strbuf *out, struct errmsg *err);

struct timeline_slice_request {
	uint32_t track, lane;
	int64_t at_ns; /* when it begins, or a time in it */
};

/*
 * Appends what is known of a slice, as a JSON object: {"track", "lane", "name", "category",
 * "start_ns", "duration_ns", "previous_ns", "next_ns", "details": [{"title", "kind", "value"}],
 * "stack", "links", "links_left_out"}. category: of rows, as their file has it; null: of samples
 *   previous_ns, next_ns: when its neighbours in the lane begin; null: there is none
 *   details: what the row says of itself; kind: that of a column of the report
 *   stack: texts, outermost first: of work that of its launch; of a row in a thread the Python
 *     functions and rows around it; of a sample its own
 *   links: [{"kind", "track", "lane", "name", "start_ns", "duration_ns", "from_ns", "from_lane"}],
 *     at most TIMELINE_LINKS_MAX. kind: "launched_by", "launched", "backward" (to the operator of
 *     the gradient), "forward". Links of what lies inside of the slice are its own, too: from_ns
 *     and from_lane are where in its track they begin.
 * Returns 0, -ENOMEM, or -EINVAL with a sentence: there is no such slice.
 */
int timeline_slice(const struct timeline *timeline, const struct timeline_slice_request *request,
	struct strbuf *out, struct errmsg *err);
