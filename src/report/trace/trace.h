/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of traces: an answer first, then sections. To add a section:
 *   1. `const struct trace_section NAME_section` at the bottom of a file of its own,
 *   2. a line in the table of src/cli/report_trace.c, its name in the choices of --by in
 *      src/cli/report.c,
 *   3. the file in src/report/meson.build, a test, and its part of docs/traces.md and docs/json.md.
 */
#pragma once

#include "analyses/trace_results.h"
#include "base/json.h"
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

struct trace_section {
	const char *name;    /* of --by, and the member's name in JSON */
	const char *summary; /* for the help: "idle time of streams by cause" */
	bool is_extra; /* not in the whole report: where --by names it, and in JSON likewise */
	/*
	 * Appends a heading and what belongs to it; nothing when the traces have nothing of it,
	 * but a sentence that says so when it is alone. Returns 0 or -ENOMEM.
	 */
	int (*print)(const struct trace_report *report);
	/* Writes one JSON value: null when the traces have nothing of it. Returns 0 or -ENOMEM. */
	int (*write)(const struct trace_report *report, struct json_writer *json);
};

/* In the report's order; NULL-ended. */
extern const struct trace_section *const trace_sections[];

/* NULL: no section of this name. */
const struct trace_section *trace_section_find(const char *name);

/* Which traces, what is missing in them, and where the GPU time went. Returns 0 or -ENOMEM. */
int report_trace_answer(const struct trace_report *report);
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

struct trace_json_options;
/* An array with what `write` appends for each rank (report/trace/report_json.h). */
int report_trace_write(const struct trace_report *report, struct json_writer *json,
	int (*write)(struct json_writer *json, struct trace_results *results, size_t index,
		const struct trace_json_options *options));

extern const struct trace_section temporal_section, idle_section, host_section, kernel_section,
	overlap_section, queue_section, bandwidth_section, launches_section, annotations_section,
	operators_section, path_section, stragglers_section, sequences_section, memory_section,
	cpu_operators_section;
