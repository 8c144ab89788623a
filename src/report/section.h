/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report is a list of sections. Each takes what was loaded and says what it has found as data
 * (result.h), which is then shown in the terminal, or written as JSON or CSV. To add one:
 *   1. in a file of its own, in the folder of its subject: the columns of what it says (shape.h),
 *      make(), which calls the analysis and fills them in, and at the bottom `const struct
 *      report_section NAME_section`;
 *   2. its declaration in sections.h, and its line in the table of section_table.c, in the order
 *      of the report;
 *   3. the file in meson.build, a test, docs/json.md, and its question in ARCHITECTURE.md;
 *      `meson test report-schema` says how to renew schema/report.schema.json.
 * tests/unit/toy-section.c is one.
 *
 * make() reads the model, samples and ranges from input->view (view.h), rows from input->trace
 * (rows.h). What two sections need is counted once: of the view by counts.h, of rows by
 * analyses/trace_results.h.
 */
#pragma once

#include "analyses/selection.h"
#include "report/render.h"

struct report_view;
struct trace_report;

/*
 * What a section is made of, and what there is of a model. document.c leaves a section out where
 * the model has none of its bits; query/report.c makes rows and programs where a section that
 * was asked for needs them. So make() may rely on this:
 *   - view, view->model and view->selected are always there.
 *   - trace is there if REPORT_NEEDS_ROWS is the only bit, with one view for each rank; with other
 *     bits beside it, and without it, it may be NULL.
 *   - With REPORT_NEEDS_RECORDING or FOREIGN alone the model is of that kind.
 *   - With REPORT_NEEDS_PROGRAMS or SAMPLES there may be no process, step, range or sample: another
 *     tool's trace has them only where --by asked for it, processes and steps also where there are
 *     several ranks.
 */
enum report_needs {
	REPORT_NEEDS_RECORDING = 1, /* what only a recording has: energy, counters, waiting … */
	REPORT_NEEDS_FOREIGN = 2,   /* another tool's trace: what its files say of themselves */
	REPORT_NEEDS_ROWS = 4, /* rows of threads and streams: of either, where they were made */
	REPORT_NEEDS_PROGRAMS = 8, /* processes, steps and ranges: of either */
	REPORT_NEEDS_SAMPLES = 16, /* samples and stacks: of either */
};
#define REPORT_OF_EITHER    (REPORT_NEEDS_ROWS | REPORT_NEEDS_PROGRAMS | REPORT_NEEDS_SAMPLES)
#define REPORT_OF_RECORDING (REPORT_NEEDS_RECORDING | REPORT_OF_EITHER)
#define REPORT_OF_FOREIGN   (REPORT_NEEDS_FOREIGN | REPORT_OF_EITHER)

/* What was loaded, and what was asked for. */
struct report_input {
	const struct report_view *view;
	const struct trace_report *trace; /* the model's rows; NULL: they were not made */
	const char *by;                   /* --by; NULL: not given */
	size_t limit;                     /* --limit; 0: not given, which see below */
	bool is_alone;                    /* --by names this section */
	bool is_json;                     /* all rows, unless there is a limit */
	bool is_page;                     /* what a terminal gets, and more rows than it shows */
};

/* Is it another tool's trace? See model_is_foreign(). */
bool report_is_foreign(const struct report_input *input);
/* Are the figures of rows sonde's own, not by another tool's definitions? */
bool report_is_own(const struct report_input *input);

/*
 * How many of `count` rows to fill in, in the table that is open; it leaves out the others. Of
 * --limit, or all. `filled`: in the terminal no more than it shows. `of_rank`: where rows are of
 * one rank after the other, and the terminal shows as many of each, or joins them (join.h).
 */
size_t report_rows_wanted(struct result *result, const struct report_input *input, size_t count);
size_t report_rows_filled(
	struct result *result, const struct report_input *input, size_t count, size_t shown);
size_t report_rows_of_rank(struct result *result, const struct report_input *input, size_t count,
	size_t alone, size_t otherwise);
/* How many to fill in where a terminal shows so many: the page has more. */
size_t report_rows_of_page(const struct report_input *input, size_t shown);
/* How many rows the terminal shows: --limit, else one of these. */
size_t report_rows_shown(const struct report_input *input, size_t alone, size_t otherwise);

/* The same where the table was filled by report_rows_of_rank(); 0: it has no more rows. */
size_t report_rows_shown_of_ranks(const struct report_input *input, size_t alone, size_t otherwise);

/* For a section without anything to say: why, where --by names it. Returns 0. */
int report_nothing(struct result *result, const struct report_input *input, const char *why);

/* What --by takes. */
struct report_name {
	const char *by, *summary;
	unsigned needs; /* enum report_needs, besides those of the section; 0: nothing more */
};

struct report_section {
	/*
	 * Key: its member in JSON; without one its own members are the document's, and `title` is
	 * its name for advice. Kind and shape: what it is.
	 */
	struct report_column value;
	const char *by;                 /* of --by; NULL: it cannot be asked for by itself */
	const struct report_name *also; /* more names, ended by {0}; NULL: none */
	const char *summary;            /* for the help: "idle time of devices by cause" */
	unsigned needs;                 /* enum report_needs: any of these; 0: nothing */
	bool is_head;                   /* stands before the others, whatever --by names */
	bool is_extra;                  /* only where --by names it */
	bool is_extra_of_foreign;       /* the same, in the report of another tool's trace */
	bool is_extra_of_recordings;
	bool comes_along; /* with the section of its name that --by means */
	bool is_weighed;  /* of the samples as --weight weighs them */
	/*
	 * Which filters apply, of those with `by`: query/check.c refuses the others. 0 is
	 * SELECTION_SAMPLES.
	 */
	enum selection_kind shows;
	/*
	 * Opens the result's value when there is something to say; when there is not, it says why
	 * in a sentence if input->is_alone. Returns 0 or a negative errno.
	 */
	int (*make)(struct result *result, const struct report_input *input);
};

/* In the report's order; NULL-ended. */
extern const struct report_section *const report_sections[];

/* The first that --by names, for these kinds (enum report_needs, bits); NULL: there is none. */
const struct report_section *report_section_find(const char *by, unsigned kinds);
/* What all that --by names, for these kinds, can be made of (bits). */
unsigned report_sections_need(const char *by, unsigned kinds);

#define REPORT_NAMES_MAX 64
#define REPORT_PAGE_ROWS ((size_t)2000) /* of a table of the page, unless there is a limit */

/* All that --by takes, in the report's order, each once. Returns how many; at most `size`. */
size_t report_section_names(struct report_name *names, size_t size);
/* Those for these kinds (enum report_needs, bits). */
size_t report_section_names_of(unsigned kinds, struct report_name *names, size_t size);
