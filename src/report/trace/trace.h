/* SPDX-License-Identifier: Apache-2.0 */
/* What sections of traces share. */
#pragma once

#include "analyses/trace_results.h"
#include "base/json.h"
#include "report/sections.h"
#include "report/view.h"

/* What the user asked for beyond a section; its fields are as they were given. */
struct trace_choice {
	const char *annotation; /* windows of the critical path; NULL: profiler steps */
	uint64_t instance;      /* of that annotation; UINT64_MAX: all */
	const char *op;         /* of sequences; NULL: all */
};

/* What sections get. Several ranks are rows or columns of one table. */
struct trace_report {
	const struct trace_view *views; /* one of each rank, by rank */
	size_t count;                   /* at least 1 */
	struct trace_results *results;  /* of these views */
	size_t limit;                   /* rows of the section's table; 0: all */
	bool alone;                     /* --by names this section: details that may be long, too */
	struct trace_choice choice;
	struct report_view page; /* where to print: its terminal and out alone are set; for
				    report_heading() and report_paragraph() */
};

/* The same of traces without device work: where the time of threads went. */
int report_trace_cpu_answer(const struct trace_report *report);

/* ---- for sections ---- */

/* "rank 3", "GPU 0" or "rank 3 GPU 0": what tells the device from the others of the report. */
void report_trace_place(const struct trace_report *report, const struct trace_view *view,
	uint32_t device, struct strbuf *out);
/* The same as a cell of a table. */
void report_trace_cell(struct table *table, const struct trace_report *report,
	const struct trace_view *view, uint32_t device);
/* A stream's device and name: two cells. */
void report_trace_stream_cells(struct table *table, const struct trace_report *report,
	const struct trace_view *view, uint32_t stream);
/* "12.34 %"; "" where the whole is 0. */
void report_trace_share(struct table *table, int64_t part_ns, int64_t whole_ns);
/* "12.3 ms   12.34 %". */
void report_trace_part(struct table *table, int64_t part_ns, int64_t whole_ns);
/* A time that may be negative, as HTA's are: as such it is "-12 µs". */
void report_trace_time(struct table *table, int64_t ns);
/* Of a distribution's figure: "" where it is not known. */
void report_trace_figure(struct table *table, double ns);
/* "… 12 more kernels (--limit shows more)"; nothing when none is left out. */
void report_trace_rest(const struct trace_report *report, size_t rest, const char *what);
/* A line of what would help. */
void report_trace_advice(const struct trace_report *report, const char *text);
/* Has any rank device work? If not, a section that is alone says so. */
bool report_trace_has_works(const struct trace_report *report);
