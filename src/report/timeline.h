/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of ranks as sections see them. Those of a recording know which of its threads and device
 * works they are (`recorded` in model/trace.h), so that a section can say more where there are
 * samples and stacks.
 */
#pragma once

#include "analyses/trace_results.h"
#include "base/array.h"
#include "base/errmsg.h"
#include "report/recording/recording.h"

/* What the user asked for beyond a section; its fields are as they were given. */
struct trace_choice {
	const char *annotation; /* windows of the critical path; NULL: profiler steps */
	uint64_t instance;      /* of that annotation; UINT64_MAX: all */
	const char *op;         /* of sequences; NULL: all */
};

/* What sections get. Several ranks are rows or columns of one table. */
struct trace_report {
	const struct trace_definitions *definitions;
	const struct trace_view *views; /* one of each rank, by rank */
	size_t count;                   /* at least 1 */
	struct trace_results *results;  /* of these views */
	struct trace_choice choice;
};

/* Are figures sonde's own? */
static inline bool trace_report_is_own(const struct trace_report *report)
{
	return report->definitions == &own_definitions;
}

/* Tables that differ (struct report_column, views): of our figures, and of another tool's. */
enum { REPORT_VIEW_OWN, REPORT_VIEW_FOREIGN };

static inline unsigned report_view_of(const struct trace_report *report)
{
	return trace_report_is_own(report) ? REPORT_VIEW_OWN : REPORT_VIEW_FOREIGN;
}

/* Is there any kernel, copy or fill of a device? */
bool trace_report_has_works(const struct trace_report *report);

/* Zero-initialise. */
struct report_timeline {
	ARRAY_OF(struct trace_view) views;
	struct trace_results results;
	struct trace *recorded; /* made of a recording; NULL: none was */
	struct trace_report report;
	struct model *programs; /* see report_timeline_programs() */
	struct report_recording of_programs;
};

/* Of the traces of ranks, which outlive it; `rank` UINT64_MAX: all. Returns 0 or a negative errno
 * with a sentence. */
int report_timeline_init(struct report_timeline *timeline, struct trace *const *traces,
	size_t count, uint64_t rank, const struct trace_view_options *options, struct errmsg *err);
/* Of a recording. Likewise. */
int report_timeline_of_recording(
	struct report_timeline *timeline, const struct model *model, struct errmsg *err);
/* The steps and ranges of the traces' programs: in of_programs.view. Returns 0 or -ENOMEM. */
int report_timeline_programs(struct report_timeline *timeline);
void report_timeline_done(struct report_timeline *timeline);
#define _cleanup_report_timeline_ _cleanup_(report_timeline_done)
