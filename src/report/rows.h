/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a model as sections see them. Those of a recording know which of its threads and
 * device works they are (`recorded` in model/trace.h), so that a section can say more where there
 * are samples and stacks.
 */
#pragma once

#include "analyses/trace_results.h"
#include "base/errmsg.h"

/* What the user asked for beyond a section; its fields are as they were given. */
struct trace_choice {
	const char *annotation; /* windows of the critical path; NULL: profiler steps */
	uint64_t instance;      /* of that annotation; UINT64_MAX: all */
	const char *op;         /* of sequences; NULL: all */
};

/* Several ranks are rows or columns of one table. Zero-initialise. */
struct trace_report {
	const struct trace_definitions *definitions;
	struct trace_view *views; /* one of each rank, by rank */
	size_t count;
	struct trace_results *results; /* of these views */
	struct trace_choice choice;
};

/*
 * Views of model->traces, which model_make_rows() made, or an importer. `rank` UINT64_MAX: of all.
 * Returns 0 or a negative errno with a sentence.
 */
int trace_report_init(struct trace_report *report, const struct model *model,
	const struct trace_view_options *options, uint64_t rank, struct errmsg *err);
void trace_report_done(struct trace_report *report);
#define _cleanup_trace_report_ _cleanup_(trace_report_done)

/* 0 of nothing. */
static inline double report_percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

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
