/* SPDX-License-Identifier: Apache-2.0 */
/* What a timeline is made of. */
#pragma once

#include "model/trace.h"
#include "query/timeline/counter.h"
#include "query/timeline/lane.h"
#include "query/timeline/timeline.h"

/* Later times are taken for this one: sums of two do not overflow. */
#define TIMELINE_END_NS (INT64_MAX / 4)

enum timeline_kind {
	TIMELINE_THREAD,
	TIMELINE_PYTHON,
	TIMELINE_SAMPLES,
	TIMELINE_STREAM,
	TIMELINE_COUNTER,
	TIMELINE_KIND_MAX,
};

/* A trace, as the timeline has it. */
struct timeline_source {
	const struct trace *trace;
	int64_t offset_ns;     /* added to its times */
	uint32_t first_name;   /* of its strings, in the timeline's numbers */
	uint8_t *lanes;        /* by row: its lane; TIMELINE_LANES_MAX: in none */
	uint32_t *track_of[2]; /* by track of the trace: the timeline's, of rows and of Python's
				  rows; MODEL_NONE: none */
};

/* Where the slices of a lane come from: rows of a source, or samples of a model. */
struct timeline_lane {
	const struct timeline *timeline;
	const struct timeline_source *source; /* NULL: samples */
	uint32_t *places;                     /* rows, or samples */
	struct lane lane;
};

struct timeline_track {
	enum timeline_kind kind;
	/* Where it stands among the others. */
	uint32_t source;                             /* index */
	int64_t process_sort, pid, thread_sort, tid; /* TRACE_NO_NUMBER: not known */
	uint32_t trace_track;                        /* MODEL_NONE: none */
	uint32_t thread;                             /* of samples: the model's */
	const char *process, *name;
	struct timeline_lane *lanes;
	size_t lane_count;
	uint64_t slices, too_deep;
	struct counter counter; /* of TIMELINE_COUNTER */
	bool is_rate;           /* its last bin may end after all that happened */
};

struct timeline {
	const struct model *model;
	struct trace *own; /* the rows of a recording */
	ARRAY_OF(struct timeline_source) sources;
	ARRAY_OF(struct timeline_track) tracks;
	uint32_t first_function, first_wait, name_count; /* names after those of sources */
	struct intern texts;                             /* names of tracks */
	int64_t origin_ns;                               /* of the model's times */
	int64_t end_ns;
};

/* Text that stays as long as the timeline; NULL when memory ran out. */
const char *timeline_text(struct timeline *timeline, const char *format, ...) _printf_(2, 3);

/* Writes the text of a name as tiles have it; null: there is none. */
void timeline_write_name(const struct timeline *timeline, uint32_t name, struct json_writer *json);

/* The slice of the lane that begins at this time, or is open then. False: there is none. */
bool timeline_lane_find(const struct timeline_lane *lane, int64_t at_ns, size_t *ret_place);

/* A time, between 0 and TIMELINE_END_NS. */
int64_t timeline_time(int64_t time_ns, int64_t offset_ns);

/* Of the model's, in the timeline's time. */
static inline int64_t timeline_model_time(const struct timeline *timeline, uint64_t time_ns)
{
	return timeline_time((int64_t)MIN(time_ns, (uint64_t)INT64_MAX), -timeline->origin_ns);
}

/* ---- the steps of timeline_new(), in their order; all return 0 or -ENOMEM ---- */

/* Tracks of rows and of samples, without lanes. */
int timeline_add_row_tracks(struct timeline *timeline);
int timeline_add_sample_tracks(struct timeline *timeline);
/* Tracks of counters, with their values; and of rates, which it adds. */
int timeline_add_counters(struct timeline *timeline);
int timeline_add_rates(struct timeline *timeline);
/* An empty one; NULL when memory ran out. It moves when another one is added. */
struct timeline_track *timeline_add_counter(
	struct timeline *timeline, const char *process, const char *name, uint32_t source);
/* Points come by time. What is no number is no value. Returns 0 or -ENOMEM. */
int timeline_add_point(struct timeline_track *track, int64_t time_ns, double value);
/* When tracks are in their order: the lanes of rows and samples. */
int timeline_fill_rows(struct timeline *timeline, struct timeline_track *track);
int timeline_fill_samples(struct timeline *timeline);
