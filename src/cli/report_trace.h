/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde report` of traces: loads them, and has the sections of report/trace/ printed or written.
 */
#pragma once

#include "report/document.h"
#include "report/timeline.h"

/* What sections can be made of. */
#define KINDS_OF_TRACE (REPORT_NEEDS_TRACE | REPORT_NEEDS_TIMELINE | REPORT_NEEDS_PROGRAMS)

struct report_trace_arguments {
	struct trace_view_options view;
	const char *by; /* --by; NULL: all sections */
	struct trace_choice choice;
	uint64_t rank;  /* UINT64_MAX: all */
	uint64_t limit; /* 0: as suits */
	enum report_form form;
};

/* Do the options fit traces, and each other? Returns 0, or -EINVAL with a sentence. */
int report_traces_check(
	const struct report_trace_arguments *arguments, const char *path, struct errmsg *err);

/* `sonde report` of traces: prints it, or why there is none. Returns the exit status. */
int report_traces(
	const struct report_trace_arguments *arguments, const char *const *paths, size_t count);
